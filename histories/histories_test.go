package histories_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// folder is a folder with histories, and a store that takes them.
type folder struct {
	t       *testing.T
	folder  string
	store   string
	written time.Time
}

const historySession = "a0000000-0000-4000-8000-0000000000ff"

func historyRecord(n int, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"a0000000-0000-4000-8000-%012d","parentUuid":null,"sessionId":%q,`+
		`"timestamp":"2025-01-02T03:04:05Z","message":{"role":"user","content":%q}}`+"\n", n, historySession, text)
}

func (h *folder) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chtimes(path, h.written, h.written); err != nil {
		h.t.Fatal(err)
	}
}

// imports imports all files in a new process's place: it opens the store anew. It returns what was read and what was
// passed over, and the messages that were added.
func (h *folder) imports(o importer.Options) (read, unchanged int, added int64) {
	h.t.Helper()
	h.with(func(s *ctxdir.Store) { read, unchanged, added = h.look(histories.Into(s), o) })
	return read, unchanged, added
}

// look imports all files as an import does that follows them.
func (h *folder) look(into *histories.Store, o importer.Options) (read, unchanged int, added int64) {
	h.t.Helper()
	o.Known = into
	for path, err := range importer.Files(h.folder) {
		if err != nil {
			h.t.Fatal(err)
		}
		for r, err := range importer.Import(h.t.Context(), into, path, o) {
			if err != nil {
				h.t.Fatal(err)
			}
			if added += r.Added; r.Unchanged {
				unchanged++
			} else {
				read++
			}
		}
	}
	if err := into.Save(); err != nil {
		h.t.Fatal(err)
	}
	return read, unchanged, added
}

func (h *folder) with(f func(s *ctxdir.Store)) {
	h.t.Helper()
	s, err := ctxdir.Init(h.store)
	if err != nil {
		h.t.Fatal(err)
	}
	f(s)
	if err := s.Close(); err != nil {
		h.t.Fatal(err)
	}
}

// change calls f with the context of the session.
func (h *folder) change(f func(s *ctxdir.Store, c *ctxdir.Context) error) {
	h.t.Helper()
	h.with(func(s *ctxdir.Store) {
		var id uuid.UUID
		for is, err := range s.IDs() {
			if id = is; err != nil {
				h.t.Fatal(err)
			}
		}
		if err := s.Use(h.t.Context(), id, func(c *ctxdir.Context) error { return f(s, c) }); err != nil {
			h.t.Fatal(err)
		}
	})
}

// TestImportedAtRest: an import that looks again and finds nothing new does not touch the cache. What it finds after that
// is in the cache, beside what was there.
func TestImportedAtRest(t *testing.T) {
	h := &folder{t: t, folder: t.TempDir(), store: filepath.Join(t.TempDir(), "store"), written: time.Now().Add(-time.Hour)}
	h.write("a.jsonl", historyRecord(1, "Hello"))
	h.with(func(s *ctxdir.Store) {
		into := histories.Into(s)
		h.look(into, importer.Options{})
		cache := filepath.Join(h.store, "derived", "imports.json")
		if err := os.Rename(cache, cache+".away"); err != nil {
			t.Fatal(err)
		}
		if read, unchanged, _ := h.look(into, importer.Options{}); read != 0 || unchanged != 1 {
			t.Fatalf("%d files were read, %d passed over", read, unchanged)
		}
		if _, err := os.Stat(cache); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a look at rest wrote the cache: %v", err)
		}
		if err := os.Rename(cache+".away", cache); err != nil {
			t.Fatal(err)
		}
		h.write("b.jsonl", strings.ReplaceAll(historyRecord(2, "World"), historySession, "a0000000-0000-4000-8000-0000000000ee"))
		h.look(into, importer.Options{})
	})
	if read, unchanged, _ := h.imports(importer.Options{}); read != 0 || unchanged != 2 {
		t.Errorf("in the next process %d files were read, %d passed over", read, unchanged)
	}
}

// TestImportedUnchanged: an import passes over a file that did not change, and over nothing else: not over a file that
// grew or has another end, and not if something was committed to the context since, or the cache is lost, damaged or of
// other options.
func TestImportedUnchanged(t *testing.T) {
	begin := historyRecord(1, "Hello") + historyRecord(2, "there")
	for name, test := range map[string]struct {
		change func(h *folder)
		o      importer.Options
		read   bool
		added  int64
	}{
		"nothing": {func(*folder) {}, importer.Options{}, false, 0},
		"touched": {func(h *folder) {
			h.written = h.written.Add(time.Second)
			h.write("a.jsonl", begin)
		}, importer.Options{}, true, 0},
		"grown": {func(h *folder) { h.write("a.jsonl", begin+historyRecord(3, "more")) }, importer.Options{}, true, 1},
		"another end": {func(h *folder) {
			h.write("a.jsonl", strings.ReplaceAll(begin, "000002", "000007"))
		}, importer.Options{}, true, 1},
		"other options": {func(*folder) {}, importer.Options{Format: importer.JSONL}, true, 2},
		"follow":        {func(*folder) {}, importer.Options{Growing: true}, false, 0},
		"appended": {func(h *folder) {
			h.change(func(_ *ctxdir.Store, c *ctxdir.Context) error {
				_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(`{"a":1}`)})
				return err
			})
		}, importer.Options{}, true, 0},
		"rewound": {func(h *folder) {
			h.change(func(_ *ctxdir.Store, c *ctxdir.Context) error { return c.Active().Rewind(t.Context(), 1) })
		}, importer.Options{}, true, 1},
		"removed": {func(h *folder) {
			h.with(func(s *ctxdir.Store) {
				for id := range s.IDs() {
					if _, err := s.Remove(t.Context(), id); err != nil {
						t.Fatal(err)
					}
				}
			})
		}, importer.Options{}, true, 2},
		"cache removed": {func(h *folder) {
			if err := os.RemoveAll(filepath.Join(h.store, "derived")); err != nil {
				t.Fatal(err)
			}
		}, importer.Options{}, true, 0},
		"cache damaged": {func(h *folder) {
			path := filepath.Join(h.store, "derived", "imports.json")
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)-1] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, importer.Options{}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := &folder{t, t.TempDir(), filepath.Join(t.TempDir(), "store"), time.Now().Add(-time.Hour)}
			h.write("a.jsonl", begin)
			if read, unchanged, added := h.imports(importer.Options{}); read != 1 || unchanged != 0 || added != 2 {
				t.Fatalf("at first: %d read, %d unchanged, %d added", read, unchanged, added)
			}
			test.change(h)
			read, unchanged, added := h.imports(test.o)
			if read+unchanged != 1 || (read == 1) != test.read || added != test.added {
				t.Errorf("%d read, %d unchanged, %d messages added", read, unchanged, added)
			}
			if read, unchanged, _ = h.imports(test.o); read != 0 || unchanged != 1 {
				t.Errorf("once more: %d read, %d unchanged", read, unchanged)
			}
		})
	}
}

// TestImportedRestored: after the context was put back to an older state, as from a backup, its file is read again.
func TestImportedRestored(t *testing.T) {
	h := &folder{t, t.TempDir(), filepath.Join(t.TempDir(), "store"), time.Now().Add(-time.Hour)}
	h.write("a.jsonl", historyRecord(1, "Hello"))
	h.imports(importer.Options{})
	var folder string
	h.change(func(_ *ctxdir.Store, c *ctxdir.Context) error {
		folder = filepath.Join(h.store, c.ID().String())
		return nil
	})
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	h.write("a.jsonl", historyRecord(1, "Hello")+historyRecord(2, "there"))
	h.imports(importer.Options{})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	if read, _, added := h.imports(importer.Options{}); read != 1 || added != 1 {
		t.Errorf("%d read, %d messages added", read, added)
	}
}

// TestImportedTogether: several files of one session feed one context. Each changes it after the one before, and none
// is read again, even if another one grows.
func TestImportedTogether(t *testing.T) {
	h := &folder{t, t.TempDir(), filepath.Join(t.TempDir(), "store"), time.Now().Add(-time.Hour)}
	for i := range 3 {
		h.write(fmt.Sprint("f", i, ".jsonl"), historyRecord(1, "Hello")+historyRecord(10+i, "there"))
	}
	h.imports(importer.Options{})
	if read, unchanged, _ := h.imports(importer.Options{}); read != 0 || unchanged != 3 {
		t.Errorf("%d read, %d unchanged", read, unchanged)
	}
	h.write("f2.jsonl", historyRecord(1, "Hello")+historyRecord(12, "there")+historyRecord(20, "more"))
	if read, unchanged, added := h.imports(importer.Options{}); read != 1 || unchanged != 2 || added != 1 {
		t.Errorf("one has grown: %d read, %d unchanged, %d added", read, unchanged, added)
	}
	if read, unchanged, _ := h.imports(importer.Options{}); read != 0 || unchanged != 3 {
		t.Errorf("after that: %d read, %d unchanged", read, unchanged)
	}
}

// TestImportedProblems: a file with a record that cannot be imported is read, and says so, each time.
func TestImportedProblems(t *testing.T) {
	h := &folder{t, t.TempDir(), filepath.Join(t.TempDir(), "store"), time.Now().Add(-time.Hour)}
	h.write("a.jsonl", historyRecord(1, "Hello")+"no JSON\n"+historyRecord(2, "there"))
	for range 3 {
		problems := 0
		if read, _, _ := h.imports(importer.Options{Problem: func(importer.Problem) { problems++ }}); read != 1 || problems != 1 {
			t.Errorf("%d read, %d problems", read, problems)
		}
	}
}

// TestImportedErased: an erased message does not come back, whether the cache is there or not; and the cache has no text.
func TestImportedErased(t *testing.T) {
	h := &folder{t, t.TempDir(), filepath.Join(t.TempDir(), "store"), time.Now().Add(-time.Hour)}
	h.write("a.jsonl", historyRecord(1, "Hello")+historyRecord(2, "canary"))
	h.imports(importer.Options{})
	b, err := os.ReadFile(filepath.Join(h.store, "derived", "imports.json"))
	if err != nil || bytes.Contains(b, []byte("canary")) || bytes.Contains(b, []byte("a.jsonl")) {
		t.Errorf("the cache has text: %s, %v", b, err)
	}
	h.change(func(s *ctxdir.Store, c *ctxdir.Context) error {
		ms, err := c.Active().Range(t.Context(), 1, 2)
		if err == nil {
			_, err = s.Erase(t.Context(), c.ID(), []uuid.UUID{ms[0].ID}, ctxdir.EraseOptions{})
		}
		return err
	})
	for range 2 {
		if _, _, added := h.imports(importer.Options{}); added != 0 {
			t.Errorf("an import after an erase added %d messages", added)
		}
		err := filepath.WalkDir(h.store, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte("canary")) {
				t.Errorf("%s has what was erased", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
