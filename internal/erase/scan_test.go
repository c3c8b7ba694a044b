package erase_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// inside returns the files of a store that hold a text: as they are, and whatever looks like a zstd frame in them decoded,
// in skippable frames too.
func inside(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	z := kit.Must[*zstd.Decoder](t)(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)))
	defer z.Close()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found := bytes.Contains(b, []byte(text))
		for at := 0; at+4 <= len(b) && !found; at++ {
			if bytes.HasPrefix(b[at:], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				kit.Check(t, z.Reset(bytes.NewReader(b[at:])))
				part, _ := io.ReadAll(z) // what comes before damage counts
				found = bytes.Contains(part, []byte(text))
			}
		}
		if found {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	kit.Check(t, err)
	return paths
}
