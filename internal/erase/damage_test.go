package erase_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// spoil changes a byte after the first text of its sort in the files that match a pattern.
func spoil(t *testing.T, folder, pattern, text string) {
	t.Helper()
	found := false
	for _, p := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(folder, pattern))) {
		b := kit.Must[[]byte](t)(os.ReadFile(p))
		if i := bytes.Index(b, []byte(text)); i >= 0 {
			found = true
			b[i+len(text)/2] ^= 0x20
			kit.Write(t, p, b)
		}
	}
	if !found {
		t.Fatalf("no %s in %s", text, pattern)
	}
}

// damages are what can happen to the history of a context, of which a segment has the message to erase.
var damages = map[string]func(w *world){
	"the message in a segment":     func(w *world) { spoil(w.t, w.folder, "segments/*", `"id":"`+w.id.String()) },
	"another message of its frame": func(w *world) { spoil(w.t, w.folder, "segments/*", `"parentUuid":"`) },
	"the rows of its segment": func(w *world) {
		w.change("segments/*", func(b []byte) { b[bytes.LastIndex(b, []byte("}\n"))+40] ^= 1 })
	},
	"the tables of its segment":     func(w *world) { w.change("segments/*", func(b []byte) { b[len(b)-100] ^= 1 }) },
	"the footer of its segment":     func(w *world) { w.change("segments/*", func(b []byte) { b[len(b)-1] ^= 1 }) },
	"its segment is missing":        func(w *world) { w.remove("segments/*") },
	"another segment is missing":    func(w *world) { w.fill(1); w.seal(); w.fill(1); w.seal(); w.remove(w.glob("segments/*")[1]) },
	"a record of the log":           func(w *world) { w.fill(3); spoil(w.t, w.folder, "log-*", `"text":"zzz`) },
	"the newest log is missing":     func(w *world) { w.fill(3); w.remove("log-*") },
	"a log before it is missing":    func(w *world) { w.fill(1); log := w.glob("log-*")[0]; w.rotate(); w.fill(1); w.remove(log) },
	"the begin record of the log":   func(w *world) { w.fill(1); spoil(w.t, w.folder, "log-*", `"kind":"begin"`) },
	"the message in a second place": func(w *world) { w.replace(`{"n":1}`); w.seal(); spoil(w.t, w.folder, "segments/*", kit.Canary) },
}

// TestEraseDamaged: an erase does not begin while a damaged part of the history may have the message, and says so. After a
// repair it leaves nothing.
func TestEraseDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 20)
			w.seal()
			kit.Check(t, w.c.Close())
			w.c = kit.Must[*engine.Context](t)(w.c.Store.Context(t.Context(), w.c.ID()))
			damage(w)
			w.reopen()
			before := w.bodies()
			for _, dry := range []bool{true, false} {
				_, err := kit.Erase(w.c.Store, w.c.ID(), w.id, erase.Options{Shared: true, DryRun: dry})
				if !errors.Is(err, engine.ErrDamaged) || !strings.Contains(err.Error(), "repair") {
					t.Errorf("dry run %v: %v", dry, err)
				}
			}
			w.reopen()
			if !maps.Equal(w.bodies(), before) {
				t.Errorf("something was changed")
			}
			kit.Finish(t, checking.Repair(t.Context(), w.c.Store, nil, checking.Options{}))
			w.reopen()
			_, err := kit.Erase(w.c.Store, w.c.ID(), w.id, erase.Options{Shared: true})
			if _, nerr := os.Lstat(filepath.Join(w.folder, ctxfolder.ErasingFile)); err != nil || !errors.Is(nerr, fs.ErrNotExist) {
				t.Errorf("repaired: %v; the note: %v", err, nerr)
			}
			if found := inside(t, w.dir, kit.Canary); len(found) > 0 {
				t.Errorf("the canary is in %v", found)
			}
		})
	}
}

// TestEraseDamagedCopy: so it is with a copy of the context in the store's trash, which no repair mends.
func TestEraseDamagedCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20)
	w.seal()
	w.copyToTrash()
	item := kit.Must[[]string](t)(filepath.Glob(filepath.Join(w.dir, "trash", "*")))[0]
	spoil(t, filepath.Join(item, w.c.ID().String()), "segments/*", `"id":"`+w.id.String())
	_, err := kit.Erase(w.c.Store, w.c.ID(), w.id, erase.Options{Shared: true})
	if !errors.Is(err, engine.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(item)) {
		t.Error(err)
	}
	kit.Check(t, os.RemoveAll(item))
	w.erase(erase.Options{Shared: true})
	if found := inside(t, w.dir, kit.Canary); len(found) > 0 {
		t.Errorf("the canary is in %v", found)
	}
}

func (w *world) change(pattern string, f func(b []byte)) {
	w.t.Helper()
	for _, p := range w.glob(pattern) {
		b := w.read(p)
		f(b)
		w.write(p, b)
	}
}

func (w *world) remove(pattern string) {
	w.t.Helper()
	for _, p := range w.glob(pattern) {
		kit.Check(w.t, os.Remove(filepath.Join(w.folder, p)))
	}
}
