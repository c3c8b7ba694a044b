package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"pgregory.net/rapid"
)

// piece is a message or a payload, and every copy of it that there was before the damage.
type piece struct {
	file   string // that holds it whole
	whole  []byte // what is in there
	record []byte // of a journal, without its end
}

// intact reports whether a whole copy is left.
func (p *piece) intact(journals [][]byte) bool {
	if b, err := os.ReadFile(p.file); err == nil && bytes.Equal(b, p.whole) {
		return true
	}
	for _, j := range journals {
		for _, end := range []string{"}\n", "}\r\n"} {
			if p.record != nil && bytes.Contains(j, append(bytes.Clone(p.record), end...)) {
				return true
			}
		}
	}
	return false
}

// journalsOf returns what the journals of a context hold.
func journalsOf(rt *rapid.T, dir string) (all [][]byte) {
	paths, err := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	if err != nil {
		rt.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			rt.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// TestRandomDamageToRecords damages a context in one or two places. Each message and each payload of which a record or
// a file is whole comes back in full with a repair.
func TestRandomDamageToRecords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		root, err := os.MkdirTemp("", "ctxdir-records-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		check := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		s, err := kit.Init(filepath.Join(root, "store"), kit.Manual(100, engine.WithRetain(8), engine.InOrder())...)
		check(err)
		defer s.Close()
		c, err := s.Create(ctx, engine.Metadata{})
		check(err)
		dir := filepath.Join(root, "store", c.ID().String())
		live := 0 // messages in the live journal
		for i := range rapid.IntRange(2, 8).Draw(rt, "messages") {
			_, err := c.Active().Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"text":"payload %d %s"}`, i, strings.Repeat("long ", 50))})
			check(err)
			if live++; rapid.IntRange(0, 3).Draw(rt, "fold") == 0 {
				check(c.Log.Fold(ctx, false))
				live = 0
			}
		}
		want := bodiesOf(rt, c)["main"]
		check(c.Close())
		if rapid.Bool().Draw(rt, "no blobs") {
			check(os.RemoveAll(filepath.Join(root, "store", "blobs")))
		}

		var messages, payloads []piece
		journals := journalsOf(rt, dir)
		record := func(mark string) []byte {
			for _, j := range journals {
				if at := bytes.Index(j, []byte(mark)); at >= 0 {
					from := bytes.LastIndex(j[:at], []byte(`{"chain"`))
					return bytes.Clone(j[from : at+bytes.Index(j[at:], []byte("}\n"))])
				}
			}
			rt.Fatalf("no journal has %s", mark)
			return nil
		}
		for _, m := range want {
			text := m.Text[len(`{"text":"`):]
			text = text[:len(text)-len(`"}`)]
			sum := blob.SumOf([]byte(text))
			at := len(messages)
			messages = append(messages, piece{
				file:   filepath.Join(dir, "messages", "branch-main", m.ID.String()+".json"),
				record: record(`"id":"` + m.ID.String()),
			})
			payloads = append(payloads, piece{
				file:   filepath.Join(root, "store", filepath.FromSlash(blob.Path(sum))),
				record: record(`{"blob":"` + sum.String()),
			})
			for _, p := range []*piece{&messages[at], &payloads[at]} {
				p.whole, _ = os.ReadFile(p.file)
			}
		}

		var files []string
		check(filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() && info.Name() != "metadata.json" {
				files = append(files, path)
				if strings.HasPrefix(info.Name(), "journal") {
					files = append(files, path, path, path)
				}
			}
			return err
		}))
		blanked := false
		for range rapid.IntRange(1, 2).Draw(rt, "damages") {
			path := rapid.SampledFrom(files).Draw(rt, "file")
			raw, err := os.ReadFile(path)
			if err != nil || len(raw) == 0 {
				continue // it is gone already
			}
			info, err := os.Stat(path)
			check(err)
			used := max(len(bytes.TrimRight(raw, "\n")), 1)
			at := rapid.IntRange(0, used-1).Draw(rt, "at")
			switch rapid.IntRange(0, 6).Draw(rt, "damage") {
			case 0:
				check(os.Remove(path))
				continue
			case 1, 2:
				raw[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(rt, "bit"))
			case 3:
				clear(raw[at:min(at+16, used)])
				blanked = true
			case 4:
				at = at / 512 * 512
				copy(raw[at:], bytes.Repeat([]byte("\n"), min(512, used-at)))
				blanked = true
			case 5:
				raw = bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))
			case 6:
				raw = raw[:at]
			}
			check(os.WriteFile(path, raw, 0o600))
			check(os.Chtimes(path, info.ModTime(), info.ModTime()))
		}
		journals = journalsOf(rt, dir)
		if last := &messages[len(messages)-1]; blanked && live > 0 {
			// A blank place in the live journal looks like a torn write, unless the file of a message behind it is there.
			for i := len(messages) - live; i < len(messages); i++ {
				torn := !(&piece{record: messages[i].record}).intact(journals) || !(&piece{record: payloads[i].record}).intact(journals)
				if torn && (&messages[i] == last || !last.intact(nil)) {
					rt.Skip("the end of the journal looks torn")
				}
			}
		}
		intact := make([]bool, len(want))
		for i := range want {
			intact[i] = messages[i].intact(journals) && payloads[i].intact(journals)
		}

		for _, err := range s.Repair(ctx, nil, engine.CheckOptions{}) {
			check(err)
		}
		for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
			if check(err); f.Repairable {
				rt.Fatalf("after a repair: %+v", f)
			}
		}
		c, err = s.Context(ctx, c.ID())
		check(err)
		defer c.Close()
		got := bodiesOf(rt, c)["main"]
		for i, w := range want {
			if intact[i] && (len(got) <= i || got[i].Body != w.Body) {
				rt.Fatalf("position %d of %d is lost though a copy of it was whole", i, len(got))
			}
		}
	})
}
