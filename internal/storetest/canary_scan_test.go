package storetest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// kind names a canary: a word that is in one place of the store, and nowhere else.
type kind string

// word is the canary of a kind. Its first letter is that of no other one, and no word of English begins like it: the
// search index leaves out what a term has in common with the one before it.
func (k kind) word() string {
	return string(rune('a'+slices.Index(kinds, k))) + "zj" + strings.ReplaceAll(string(k), " ", "") + "vq"
}

// forms are the spellings of the canary that a file could have: as it is, escaped in JSON, and in base64 at each of the
// three alignments.
func (k kind) forms() (all [][]byte) {
	tail := k.word()[2:]
	var escaped strings.Builder
	for _, r := range tail {
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	all = append(all, []byte(tail), []byte(escaped.String()))
	for pad := range 3 {
		// The first and the last digits depend on the bytes beside the canary.
		digits := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", pad) + tail))
		all = append(all, []byte(digits[[]int{0, 2, 3}[pad]:len(digits)-1]))
	}
	return all
}

// canaries returns the files below a folder that hold the canary of each kind, in their content or their names. It
// reads every byte of every file, so also the free pages of a database, and decompresses what looks like a frame of
// zstd, wherever it begins.
func canaries(t *testing.T, dir string) map[kind][]string {
	t.Helper()
	z := kit.Must[*zstd.Decoder](t)(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20)))
	defer z.Close()
	found := map[kind][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		content := []byte(filepath.Base(name) + "\n")
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = append(content, bytes.TrimRight(raw, "\n\x00")...) // space that a log lays out
			content = append(content, decompressed(z, raw)...)
		}
		for _, k := range kinds {
			if slices.ContainsFunc(canaryForms[k], func(form []byte) bool { return bytes.Contains(content, form) }) {
				found[k] = append(found[k], name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// canaryForms are the forms of all kinds.
var canaryForms = func() map[kind][][]byte {
	all := map[kind][][]byte{}
	for _, k := range kinds {
		all[k] = k.forms()
	}
	return all
}()

// decompressed returns the content of the frames in a file, as far as each goes.
func decompressed(z *zstd.Decoder, raw []byte) (all []byte) {
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(raw, magic); at >= 0; {
		if z.Reset(bytes.NewReader(raw[at:])) == nil {
			content, _ := io.ReadAll(io.LimitReader(z, 8<<20))
			all = append(append(all, '\n'), content...)
		}
		next := bytes.Index(raw[at+len(magic):], magic)
		if next < 0 {
			break
		}
		at += len(magic) + next
	}
	return all
}

// TestCanaryForms hides a canary in each way that [canaries] has to see through.
func TestCanaryForms(t *testing.T) {
	k := kinds[0]
	quoted := kit.Must[[]byte](t)(json.Marshal("before " + k.word() + " behind"))
	z := kit.Must[*zstd.Encoder](t)(zstd.NewWriter(nil))
	frame := z.EncodeAll(quoted, nil)
	hidden := map[string][]byte{
		"plain": quoted, "frame": frame, "frames": slices.Concat([]byte("head"), z.EncodeAll([]byte("x"), nil), frame, []byte("tail")),
		"name-" + k.word(): nil, "escaped": []byte(`"\u0061` + string(k.forms()[1]) + `"`),
	}
	for pad := range 3 {
		hidden[fmt.Sprint("base64-", pad)] = []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + k.word() + " behind")))
	}
	for name, content := range hidden {
		dir := t.TempDir()
		kit.Write(t, filepath.Join(dir, name), content)
		if got := canaries(t, dir); len(got) != 1 || len(got[k]) != 1 {
			t.Errorf("%s: found %v", name, got)
		}
	}
}
