package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRandomDamage damages a random context in one to five places. After the repair a check is clean, every message
// that was not damaged is intact, and every one is there that an intact copy, in a journal or a second file, could give
// back.
func TestRandomDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		dir, err := os.MkdirTemp("", "ctxdir-damage-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		check := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		s, err := kit.Init(filepath.Join(dir, "store"), kit.Manual(100, engine.WithRetain(3))...)
		check(err)
		defer s.Close()
		c, err := s.Create(ctx, engine.Metadata{})
		check(err)
		branches := []string{"main"}
		for i := range rapid.IntRange(3, 40).Draw(rt, "steps") {
			b, err := c.Branch(rapid.SampledFrom(branches).Draw(rt, "branch"))
			check(err)
			switch rapid.IntRange(0, 11).Draw(rt, "step") {
			case 0:
				n, err := b.Len(ctx)
				check(err)
				name := fmt.Sprint("b", i)
				_, err = b.Fork(ctx, name, rapid.Int64Range(0, n).Draw(rt, "at"))
				check(err)
				branches = append(branches, name)
			case 1:
				check(c.Log.Fold(ctx, false))
			case 2:
				check(c.Fold(ctx))
			case 3:
				o := engine.ArchiveOptions{}
				if rapid.Bool().Draw(rt, "of one") {
					o.Branch = b.Name()
				}
				_, err := c.Archive(ctx, o)
				check(err)
			case 4:
				_, err := c.Unarchive(ctx, nil)
				check(err)
			default:
				text := bytes.Repeat([]byte("word "), rapid.SampledFrom([]int{1, 5, 60}).Draw(rt, "words"))
				_, err := b.Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"n":%d,"text":"%s %s"}`, i, text, b.Name())})
				check(err)
			}
		}
		check(c.Log.Fold(ctx, false)) // what is in a live journal has no file to be missed
		want := bodiesOf(rt, c)
		check(c.Close())

		damaged := map[string]bool{} // files
		var files []string
		check(filepath.Walk(filepath.Join(dir, "store", c.ID().String()), func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				files = append(files, path)
			}
			return err
		}))
		for range rapid.IntRange(1, 5).Draw(rt, "damages") {
			path := rapid.SampledFrom(files).Draw(rt, "file")
			raw, err := os.ReadFile(path)
			if err != nil {
				continue // it is gone already
			}
			damaged[path] = true
			switch rapid.IntRange(0, 5).Draw(rt, "damage") {
			case 0:
				check(os.Remove(path))
			case 1:
				check(os.WriteFile(path, nil, 0o600))
			case 2:
				check(os.WriteFile(path, raw[:len(raw)/2], 0o600))
			case 3:
				check(os.WriteFile(path, make([]byte, len(raw)), 0o600))
			case 4:
				if len(raw) > 0 {
					raw[rapid.IntRange(0, len(raw)-1).Draw(rt, "at")] ^= byte(1 << rapid.IntRange(0, 7).Draw(rt, "bit"))
					info, err := os.Stat(path)
					check(err)
					check(os.WriteFile(path, raw, 0o600))
					check(os.Chtimes(path, info.ModTime(), info.ModTime()))
				}
			case 5:
				check(os.Remove(path))
				check(os.Mkdir(path, 0o700))
			}
		}

		if path := filepath.Join(dir, "store", c.ID().String(), "metadata.json"); damaged[path] {
			if raw, err := os.ReadFile(path); err == nil {
				if _, err := ctxfolder.ParseMetadata(raw); err == nil {
					rt.Skip("metadata that is still valid is an edit by hand")
				}
			}
		}
		repair := func() (done []engine.Repaired) {
			for r, err := range s.Repair(ctx, nil, engine.CheckOptions{}) {
				if errors.Is(err, engine.ErrFormat) {
					rt.Skip("a flipped bit made another version of it, which is not touched")
				}
				check(err)
				done = append(done, r)
			}
			return done
		}
		repair()
		for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
			check(err)
			if f.Kind == integrity.KindPayload && !f.Repairable && anyOf(damaged, "*.rows") {
				continue // a flipped bit in a reference, and nothing that tells it from an edit
			}
			if f.Repairable || f.Severity == engine.SeverityError {
				rt.Fatalf("after repair: %+v", f)
			}
		}
		if again := repair(); len(again) > 0 {
			rt.Fatalf("a second repair did %+v", again)
		}
		c, err = s.Context(ctx, c.ID())
		check(err)
		defer c.Close()
		got := bodiesOf(rt, c)
		journals := anyOf(damaged, "journal-*.jsonl")
		metadataLost := damaged[filepath.Join(dir, "store", c.ID().String(), "metadata.json")] && journals
		indexLost := damaged[filepath.Join(dir, "store", c.ID().String(), "index.json")]
		sumsLost := anyOf(damaged, "*.rows")
		for name, w := range want {
			g := got[name]
			if metadataLost && descentLost(w, damaged) {
				continue // nothing is left that tells what it began on
			}
			whole := func(m stored) bool { return !m.damaged(damaged) }
			if end := len(g); end < len(w) && journals && indexLost && !slices.ContainsFunc(w[end:], whole) {
				w = w[:end] // nothing is left that tells of the last messages
			}
			if len(g) != len(w) {
				rt.Fatalf("branch %s has %d messages, wanted %d", name, len(g), len(w))
			}
			for i := range w {
				if g[i].Text == "" && w[i].damaged(damaged) && (i+1 == len(w) || w[i+1].damaged(damaged)) {
					continue // neither it nor the one behind it is left to tell its id
				}
				if g[i].ID != w[i].ID {
					rt.Fatalf("branch %s, position %d: %s, wanted %s", name, i, g[i].ID, w[i].ID)
				}
				if g[i].Text == w[i].Text {
					continue
				}
				if g[i].Text != "" && w[i].damaged(damaged) && (!w[i].journal || journals) && sumsLost {
					continue // nothing is left that tells a flipped bit from an edit
				}
				if g[i].Text != "" {
					rt.Fatalf("branch %s, position %d: %s, wanted %s", name, i, g[i].Text, w[i].Text)
				}
				if !w[i].damaged(damaged) {
					rt.Fatalf("branch %s, position %d was not damaged, and is gone", name, i)
				}
				if w[i].journal && !journals {
					rt.Fatalf("branch %s, position %d is in an intact journal, and is gone", name, i)
				}
			}
		}
	})
}

// anyOf reports whether a file with a name like this was damaged.
func anyOf(damaged map[string]bool, pattern string) bool {
	for path := range damaged {
		if match, _ := filepath.Match(pattern, filepath.Base(path)); match {
			return true
		}
	}
	return false
}

// descentLost reports whether the message before a branch's first own one was damaged, or all of its own.
func descentLost(w []stored, damaged map[string]bool) bool {
	first := slices.IndexFunc(w, func(m stored) bool { return m.own && !m.damaged(damaged) })
	return first < 0 || first > 0 && w[first-1].damaged(damaged)
}

// stored is a message as a branch shows it.
type stored struct {
	kit.Body
	journal bool // a journal has it
	pack    string
	own     bool // it is of the branch's own line
}

// damaged reports whether the message's file was, or its pack.
func (s *stored) damaged(files map[string]bool) bool {
	for path := range files {
		if filepath.Base(path) == s.ID.String()+".json" || filepath.Base(path) == s.pack {
			return true
		}
	}
	return false
}

func bodiesOf(t *rapid.T, c *engine.Context) map[string][]stored {
	ctx := context.Background()
	all := map[string][]stored{}
	infos, err := c.Branches(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		b, err := c.Branch(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := b.Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			text, err := m.Body(ctx)
			if m.Unavailable != nil || err != nil {
				text = nil
			}
			entries, err := c.Log.Entries(m.Line, m.Position, m.Position+1)
			if err != nil || len(entries) != 1 {
				t.Fatal(len(entries), err)
			}
			_, journal := c.Log.ReadRecord(&entries[0])
			pack := ""
			if id := entries[0].Pack; id != uuid.Nil {
				journal, pack = false, archive.FileName(id)
			}
			all[info.Name] = append(all[info.Name], stored{kit.Body{m.ID, string(text)}, journal, pack, m.Line == info.Line})
		}
	}
	return all
}
