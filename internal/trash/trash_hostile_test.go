//go:build unix

package trash_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// hoard is a store whose trash has an item of each kind that can be brought back, with others to come, and something
// outside that nothing may touch.
type hoard struct {
	t       *testing.T
	store   *engine.Store
	dir     string // of the store
	outside string // a folder beside it
	c       *engine.Context
	trash   string              // of the context
	main    string              // the id of the line that branch main points at
	shown   map[string][]string // what each branch of c shows
	gone    []string            // what the removed line showed
	line    engine.TrashItem
	old     engine.TrashItem // a version
	whole   engine.TrashItem // a context
	blobs   engine.TrashItem
}

func newHoard(t *testing.T) *hoard {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	h := &hoard{t: t, dir: filepath.Join(root, "store"), outside: filepath.Join(root, "outside"), shown: map[string][]string{}}
	kit.Check(t, os.MkdirAll(filepath.Join(h.outside, "folder"), 0o700),
		os.WriteFile(h.outside+"/folder/file.json", []byte(kit.Canary), 0o600),
		os.WriteFile(h.outside+"/item.json", []byte(`{"ctxdir":"trash/1","kind":"damaged","name":"`+kit.Canary+`"}`), 0o600))
	h.store = kit.Must[*engine.Store](t)(kit.Init(h.dir, kit.Manual(1<<10, engine.WithLockTimeout(5*time.Second))...))
	t.Cleanup(func() { _ = h.store.Close() })
	_, _, err := h.store.Blobs.Put([]byte(kit.LargeBody("lost")))
	kit.Check(t, err)
	age(t, h.dir)
	kit.Sweep(t, h.store, time.Hour)
	h.blobs = kit.TrashOf(t, h.store, "blobs")[0]
	lost := kit.Must[*engine.Context](t)(h.store.Create(ctx, engine.Metadata{Title: "whole"}))
	kit.Fill(t, lost.Active(), 3)
	kit.Check(t, lost.Close())
	kit.Must[engine.TrashItem](t)(h.store.Delete(ctx, lost.ID()))
	h.whole = kit.TrashOf(t, h.store, "context")[0]
	h.c, h.gone = kit.NewOrphan(t, h.store)
	h.trash = filepath.Join(h.dir, h.c.ID().String(), "trash")
	m := kit.Load(t, h.c.Active())[1]
	kit.Check(t, h.c.Active().Replace(ctx, m.ID, engine.Draft{Body: []byte(`{"newer":1}`)}))
	h.line, h.old = kit.TrashOf(t, h.store, "line")[0], kit.TrashOf(t, h.store, "version")[0]
	kit.Must[*engine.Branch](t)(h.c.Active().Fork(ctx, "side", 2))
	kit.Check(t, h.c.Seal(ctx))
	for _, b := range h.c.Current().Branches {
		h.shown[b.Name] = kit.Bodies(t, kit.Must[*engine.Branch](t)(h.c.Branch(b.Name)))
		if b.Name == engine.MainBranch {
			h.main = b.Line.String()
		}
	}
	// What is to be collected yet, beside the damage and in another context.
	for _, c := range []*engine.Context{h.c, kit.Must[*engine.Context](t)(h.store.Create(ctx, engine.Metadata{}))} {
		kit.Fill(t, kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "next")), 2)
		kit.Check(t, c.Remove(ctx, "next"), c.Close())
	}
	return h
}

// item is the path of a folder of the context's trash that is to become an item: a new one.
func (h *hoard) item() string {
	h.t.Helper()
	path := filepath.Join(h.trash, uuid.Must(uuid.NewV7()).String())
	kit.Check(h.t, os.Mkdir(path, 0o700))
	return path
}

// note writes an item.json: that of a damaged file, changed.
func (h *hoard) note(path string, change map[string]any) {
	h.t.Helper()
	note := map[string]any{
		"ctxdir": "trash/1", "kind": "damaged", "name": "x", "context": h.c.ID().String(),
		"removed_at": time.Now().UTC().Format(time.RFC3339),
	}
	for k, v := range change {
		if note[k] = v; v == nil {
			delete(note, k)
		}
	}
	kit.Write(h.t, path, kit.Must[[]byte](h.t)(json.Marshal(note)))
}

// like makes an item of a damaged file, its note changed.
func (h *hoard) like(change map[string]any) string {
	h.t.Helper()
	path := h.item()
	h.note(path+"/item.json", change)
	kit.Write(h.t, path+"/x", []byte("damaged"))
	return path
}

// in makes an item of the store's trash, with this note.
func (h *hoard) in(note string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, "trash", uuid.Must(uuid.NewV7()).String())
	kit.Check(h.t, os.Mkdir(path, 0o700))
	kit.Write(h.t, path+"/item.json", []byte(note))
	return path
}

// id is that of a message which main shows.
func (h *hoard) id(at int) uuid.UUID { return uuid.MustParse(h.shown[engine.MainBranch][at][:36]) }

// list is every item, whatever cannot be listed beside them.
func (h *hoard) list() (found []engine.TrashItem, failed []error) {
	for x, err := range trash.List(context.Background(), h.store) {
		if err == nil && x.Item == uuid.Nil {
			err = x.Problem
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		found = append(found, x)
	}
	return found, failed
}

// survives does everything there is to do with trash to a store that was damaged: what is not damaged is listed,
// collected, restored and purged all the same, and nothing else changes.
func (h *hoard) survives() {
	t, ctx := h.t, context.Background()
	t.Helper()
	beside := kit.Tree(t, h.outside)
	good := []engine.TrashItem{h.line, h.old, h.whole, h.blobs}
	before := kit.Tree(t, h.dir)
	found, _ := h.list()
	for _, want := range good {
		if !slices.ContainsFunc(found, func(x engine.TrashItem) bool { return x.Item == want.Item && x.Problem == nil }) {
			t.Errorf("item %s, a %s, is not listed", want.Item, want.Kind)
		}
	}
	next := slices.DeleteFunc(slices.Clone(found), func(x engine.TrashItem) bool { return x.Name != "next" })
	if len(next) != 2 {
		t.Errorf("%d of 2 removed branches are listed", len(next))
	}
	for _, dry := range []bool{true, false} {
		for _, err := range trash.Collect(ctx, h.store, trash.CollectOptions{Grace: trash.DefaultGrace, DryRun: dry}) {
			if err != nil {
				t.Logf("collect: %v", err)
			}
		}
		if dry && kit.Tree(t, h.dir) != before {
			t.Error("listing and a dry run changed something")
		}
	}
	for _, x := range found {
		if slices.ContainsFunc(good, func(g engine.TrashItem) bool { return g.Item == x.Item }) {
			continue
		}
		r, err := trash.Restore(ctx, h.store, x.Item)
		t.Logf("restore: %+v, %v", r, err)
		h.unharmed()
	}
	for _, x := range good {
		if _, err := trash.Restore(ctx, h.store, x.Item); err != nil {
			t.Errorf("restoring a %s: %v", x.Kind, err)
		}
	}
	c := kit.Must[*engine.Context](t)(h.store.Context(ctx, h.c.ID()))
	back := false
	for _, b := range c.Current().Branches {
		got := []string{}
		for _, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(b.Name))) {
			got = append(got, m.ID.String()+string(m.Stored))
		}
		back = back || slices.Equal(got, h.gone)
	}
	if !back {
		t.Error("no branch shows what was in trash")
	}
	kit.Check(t, c.Close())
	for x, err := range trash.Purge(ctx, h.store, nil, 0, false) {
		if err != nil {
			t.Logf("purge: %+v, %v", x, err)
		}
	}
	if left, _ := h.list(); len(left) > 0 {
		t.Errorf("left in trash: %+v", left)
	}
	h.shown["side"], h.shown[engine.MainBranch] = nil, h.shown[engine.MainBranch][:1] // the old version is there again
	h.unharmed()
	for f, err := range checking.Check(ctx, h.store, nil, checking.Options{ReadData: true}) {
		ours := f.Context == h.c.ID() || f.Context == h.whole.Context
		if err != nil || ours && f.Severity != integrity.SeverityInfo && f.Kind != integrity.KindLost {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if kit.Tree(t, h.outside) != beside {
		t.Error("what lies outside changed")
	}
	if found := kit.FilesWith(t, h.dir, kit.Canary); len(found) > 0 {
		t.Errorf("what lies outside was read into %v", found)
	}
}

// erases erases a message of the removed line, whatever is in the trash; the others come back.
func (h *hoard) erases() {
	t, ctx := h.t, context.Background()
	t.Helper()
	beside := kit.Tree(t, h.outside)
	for _, dry := range []bool{true, false} {
		done, err := kit.Erase(h.store, h.c.ID(), uuid.MustParse(h.gone[2][:36]), erase.Options{DryRun: dry})
		if err != nil || len(done) == 0 {
			t.Errorf("dry run %v: %+v, %v", dry, done, err)
		}
	}
	if kit.Tree(t, h.outside) != beside {
		t.Error("what lies outside changed")
	}
	if r, err := trash.Restore(ctx, h.store, h.line.Item); err != nil || r.Messages != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	h.unharmed()
}

// endure lets a store survive each way to damage its trash, and one that is damaged in all of them erase.
func endure(t *testing.T, ways map[string]func(h *hoard)) {
	t.Helper()
	for name, damage := range ways {
		t.Run(name, func(t *testing.T) {
			h := newHoard(t)
			damage(h)
			h.survives()
		})
	}
	t.Run("all at once", func(t *testing.T) {
		h := newHoard(t)
		for _, damage := range ways {
			damage(h)
		}
		h.erases()
	})
}

// unharmed compares what branches show with what they showed.
func (h *hoard) unharmed() {
	h.t.Helper()
	ctx := context.Background()
	c := kit.Must[*engine.Context](h.t)(h.store.Context(ctx, h.c.ID()))
	defer c.Close()
	for _, seal := range []bool{false, true} {
		if seal {
			kit.Check(h.t, c.Seal(ctx))
		}
		for name, want := range h.shown {
			if got := kit.Bodies(h.t, kit.Must[*engine.Branch](h.t)(c.Branch(name))); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				h.t.Errorf("branch %s shows %v, wanted %v", name, got, want)
			}
		}
	}
}

// TestHostileNotes: an item.json that says what cannot be.
func TestHostileNotes(t *testing.T) {
	t.Parallel()
	x := uuid.NewString()
	type change = map[string]any
	endure(t, map[string]func(h *hoard){
		"another context":     func(h *hoard) { h.like(change{"context": x}) },
		"a name that leads":   func(h *hoard) { h.like(change{"name": "../../../outside"}) },
		"a name of controls":  func(h *hoard) { h.like(change{"name": "\x1b[31m\x00\n\x7f"}) },
		"a name of megabytes": func(h *hoard) { h.like(change{"name": strings.Repeat("n", 1<<19)}) },
		"position huge":       func(h *hoard) { h.version(change{"position": int64(1) << 62}) },
		"position largest":    func(h *hoard) { h.version(change{"position": int64(1<<63 - 1)}) },
		"position below 0":    func(h *hoard) { h.version(change{"position": -1}) },
		"a version of no line": func(h *hoard) {
			h.version(change{"line": x})
		},
		"a version of main":    func(h *hoard) { h.version(change{"position": 0}) },
		"a version of nothing": func(h *hoard) { h.version(change{"envelope": nil}) },
		"a version, not ours":  func(h *hoard) { h.version(change{"envelope": "\x00"}) },
		"removed never":        func(h *hoard) { h.like(change{"removed_at": nil}) },
		"removed long ago":     func(h *hoard) { h.like(change{"removed_at": "0000-01-01T00:00:00+14:00"}) },
		"removed in future":    func(h *hoard) { h.like(change{"removed_at": "9999-12-31T23:59:59-14:00"}) },
		"another version":      func(h *hoard) { h.like(change{"ctxdir": "trash/2"}) },
		"no version":           func(h *hoard) { h.like(change{"ctxdir": nil}) },
		"an unknown kind":      func(h *hoard) { h.like(change{"kind": "\x1b[31mnonsense"}) },
		"a context here":       func(h *hoard) { h.like(change{"kind": "context"}) },
		"blobs here":           func(h *hoard) { h.like(change{"kind": "blobs"}) },
		"a version as folder":  func(h *hoard) { h.like(change{"kind": "version"}) },
		"a line":               func(h *hoard) { h.like(change{"kind": "line", "line": h.main, "position": 0}) },
		"a line as file":       func(h *hoard) { h.note(h.item()+".json", change{"kind": "line"}) },
		"a line in the store's": func(h *hoard) {
			kit.Check(h.t, os.Rename(h.like(change{"kind": "line"}), filepath.Join(h.dir, "trash", x)))
		},
		"no JSON":       func(h *hoard) { kit.Write(h.t, h.item()+"/item.json", []byte("\x00\x00{")) },
		"huge":          func(h *hoard) { kit.Check(h.t, os.Truncate(h.like(nil)+"/item.json", 3<<20)) },
		"nothing in it": func(h *hoard) { h.item() },
		"the same id twice": func(h *hoard) {
			kit.Check(h.t, os.CopyFS(filepath.Join(h.dir, "trash", h.line.Item.String()), os.DirFS(h.like(nil))))
		},
	})
}

// version makes another item like the old version in trash.
func (h *hoard) version(change map[string]any) {
	h.t.Helper()
	note := map[string]any{}
	kit.Check(h.t, json.Unmarshal(kit.Must[[]byte](h.t)(os.ReadFile(filepath.Join(h.dir, h.old.Path))), &note))
	for k, v := range change {
		note[k] = v
	}
	kit.Write(h.t, filepath.Join(h.trash, uuid.Must(uuid.NewV7()).String()+".json"), kit.Must[[]byte](h.t)(json.Marshal(note)))
}
