//go:build unix

package trash_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestHostileThings: something else where an item, or a file of one, belongs, and things in items that are not theirs.
func TestHostileThings(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(h *hoard, path string){
		"a folder": func(h *hoard, path string) {
			kit.Check(h.t, os.Mkdir(path, 0o700), os.WriteFile(path+"/x", nil, 0o600))
		},
		"a link out":      func(h *hoard, path string) { kit.Check(h.t, os.Symlink(h.outside+"/item.json", path)) },
		"a link to away":  func(h *hoard, path string) { kit.Check(h.t, os.Symlink(h.outside, path)) },
		"a link to store": func(h *hoard, path string) { kit.Check(h.t, os.Symlink(h.up(path), path)) },
		"a link to self":  func(h *hoard, path string) { kit.Check(h.t, os.Symlink(filepath.Base(path), path)) },
		"a FIFO":          func(h *hoard, path string) { kit.Check(h.t, syscall.Mkfifo(path, 0o600)) },
		"an empty file":   func(h *hoard, path string) { kit.Write(h.t, path, nil) },
	}
	places := map[string]func(h *hoard) string{
		"item.json":          func(h *hoard) string { return h.item() + "/item.json" },
		"in an item":         func(h *hoard) string { return h.like(nil) + "/y" },
		"a version":          func(h *hoard) string { return h.item() + ".json" },
		"an item":            func(h *hoard) string { return filepath.Join(h.trash, uuid.NewString()) },
		"an item, store":     func(h *hoard) string { return filepath.Join(h.dir, "trash", uuid.NewString()) },
		"a version, store":   func(h *hoard) string { return filepath.Join(h.dir, "trash", uuid.NewString()+".json") },
		"a hidden one":       func(h *hoard) string { return filepath.Join(h.trash, "."+uuid.NewString()) },
		"a hidden one, here": func(h *hoard) string { return filepath.Join(h.dir, "trash", ".x") },
		"a foreign one":      func(h *hoard) string { return filepath.Join(h.dir, "trash", "notes") },
		"an empty context's": func(h *hoard) string {
			c := kit.Must[*engine.Context](h.t)(h.store.Create(h.t.Context(), engine.Metadata{}))
			kit.Check(h.t, c.Close())
			return filepath.Join(h.dir, c.ID().String(), "trash")
		},
		"a context": func(h *hoard) string {
			x := uuid.NewString()
			return h.in(`{"ctxdir":"trash/1","kind":"context","context":"`+x+`","removed_at":"2026-01-02T03:04:05Z"}`) + "/" + x
		},
		"a blob": func(h *hoard) string {
			item := h.in(`{"ctxdir":"trash/1","kind":"blobs","name":"blobs","removed_at":"2026-01-02T03:04:05Z"}`)
			return item + "/" + strings.Repeat("ab", 32) + ".zst"
		},
	}
	for kind, put := range kinds {
		t.Run(kind, func(t *testing.T) {
			for _, what := range []func(*hoard){(*hoard).survives, (*hoard).erases} {
				h := newHoard(t)
				for _, at := range places {
					put(h, at(h))
				}
				what(h)
			}
		})
	}
}

// TestHostileCopies: what lies in the store's trash as a copy of a context and is none keeps an erase from what it has
// to remove, and it says so; where it leads is left alone.
func TestHostileCopies(t *testing.T) {
	t.Parallel()
	const note = `{"ctxdir":"trash/1","kind":"context","removed_at":"2026-01-02T03:04:05Z"}`
	for name, put := range map[string]func(h *hoard, item, path string){
		"nothing in it": func(h *hoard, _, path string) { kit.Check(h.t, os.Mkdir(path, 0o700)) },
		"another context": func(h *hoard, _, path string) {
			kit.Check(h.t, os.CopyFS(path, os.DirFS(filepath.Join(h.dir, h.whole.Path))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHoard(t)
			item := h.in(note)
			put(h, item, filepath.Join(item, h.c.ID().String()))
			id := uuid.MustParse(h.gone[2][:36])
			before := kit.Tree(t, h.dir)
			if _, err := kit.Erase(h.store, h.c.ID(), id, erase.Options{}); err == nil || !strings.Contains(err.Error(), filepath.Base(item)) {
				t.Errorf("%v", err)
			}
			if kit.Tree(t, h.dir) != before {
				t.Error("something changed")
			}
			kit.Check(t, os.RemoveAll(item))
			h.erases()
		})
	}
	h := newHoard(t)
	item := h.in(note)
	kit.Check(t, os.CopyFS(filepath.Join(item, h.c.ID().String()), os.DirFS(filepath.Join(h.dir, h.c.ID().String()))),
		os.Symlink(h.outside, item+"/locks"))
	h.erases()
}

// up is the store's folder as a link at a path has to call it.
func (h *hoard) up(path string) string {
	h.t.Helper()
	return kit.Must[string](h.t)(filepath.Rel(filepath.Dir(path), h.dir))
}
