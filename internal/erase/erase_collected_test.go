package erase_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestEraseCollected: a message of a removed branch is erased in its place, or from an item of the format before;
// nothing of it is left, and when the branch is restored its position is erased and the others are what they were.
func TestEraseCollected(t *testing.T) {
	ctx := context.Background()
	type world struct {
		s      *engine.Store
		c      *engine.Context
		id     uuid.UUID
		folder string
	}
	erases := func(t *testing.T, w *world) {
		t.Helper()
		w.c.PutBlobs() // or the blob comes while trees are compared
		before := kit.Tree(t, w.s.Path())
		if _, err := kit.Erase(w.s, w.c.ID(), w.id, erase.Options{DryRun: true}); err != nil || kit.Tree(t, w.s.Path()) != before {
			t.Fatalf("dry run: %v, or something changed", err)
		}
		if done, err := kit.Erase(w.s, w.c.ID(), w.id, erase.Options{}); err != nil || len(done) == 0 {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	remove := func(t *testing.T, w *world) { kit.Check(t, w.c.Refresh(ctx), w.c.Remove(ctx, "gone")) }
	gc := func(t *testing.T, w *world) { // by the format before
		if moved := kit.CollectOld(t, w.c); len(moved) != 1 {
			t.Fatalf("%+v", moved)
		}
	}
	piece := func(t *testing.T, w *world) string {
		t.Helper()
		paths, _ := filepath.Glob(filepath.Join(w.folder, "trash", "*", "messages-1.jsonl"))
		if len(paths) != 1 {
			t.Fatal(paths)
		}
		return paths[0]
	}
	// harm changes the message's line in trash.
	harm := func(change func(line []byte) []byte) func(t *testing.T, w *world) {
		return func(t *testing.T, w *world) {
			path := piece(t, w)
			lines := bytes.SplitAfter(kit.Must[[]byte](t)(os.ReadFile(path)), []byte("\n"))
			lines[1] = change(lines[1])
			kit.Check(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
		}
	}
	for name, steps := range map[string][]func(*testing.T, *world){
		"before it is removed":   {erases, remove},
		"in place":               {remove, erases},
		"before it is collected": {remove, erases, gc},
		"after":                  {remove, gc, erases},
		"twice": {remove, erases, func(t *testing.T, w *world) {
			before := kit.FilesWith(t, w.folder, w.id.String())
			_, err := kit.Erase(w.s, w.c.ID(), w.id, erase.Options{})
			if err != nil || len(kit.FilesWith(t, w.folder, w.id.String())) != len(before) {
				t.Errorf("a second time: %v", err)
			}
		}},
		"a torn line": {remove, gc, harm(func(line []byte) []byte { return append(line[:len(line)-5], '\n') }), erases},
		"an edited line": {remove, gc, harm(func(line []byte) []byte {
			return bytes.Replace(line, []byte(`"id":`), []byte(`"id": `), 1)
		}), erases},
		"it could not be had": {remove, gc, harm(func([]byte) []byte {
			return []byte(`{"ctxdir":"gap/1","position":2,"id":"` + kit.TestID(7).String() + `","reason":"of the canary ` + kit.Canary + `"}` + "\n")
		}), erases},
		"half collected": {remove, gc, func(t *testing.T, w *world) {
			kit.Check(t, os.CopyFS(filepath.Join(w.folder, "trash", "."+uuid.NewString()), os.DirFS(filepath.Dir(piece(t, w)))))
			torn := filepath.Join(w.folder, "trash", "."+uuid.NewString())
			kit.Check(t, os.Mkdir(torn, 0o700), os.WriteFile(torn+"/messages-1.jsonl", []byte("\x00\x00"+kit.Canary), 0o600))
		}, erases},
		"a copy of the context": {remove, gc, func(t *testing.T, w *world) {
			kit.Check(t, os.CopyFS(filepath.Join(w.s.Path(), "trash", uuid.NewString(), w.c.ID().String()), os.DirFS(w.folder)))
		}, erases},
	} {
		for _, size := range []int{10, 3000} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithFoldBytes(-1))
				w := &world{c.Store, c, kit.TestID(7), folder}
				kit.Fill(t, c.Active(), 1)
				gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
				kit.Fill(t, gone, 1)
				kit.Append(t, gone, engine.Draft{ID: w.id, Body: kit.Secret(size + 20)})
				kit.Check(t, gone.Replace(ctx, w.id, engine.Draft{Body: kit.Secret(size)}))
				kit.Fill(t, gone, 2)
				want := kit.Bodies(t, gone)
				if len(kit.FilesWith(t, w.s.Path(), kit.Canary)) == 0 {
					t.Fatal("the canary is not there")
				}
				for _, step := range steps {
					step(t, w)
				}
				if found := kit.FilesWith(t, w.s.Path(), kit.Canary); len(found) > 0 {
					t.Errorf("the canary is in %v", found)
				}
				r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, w.s, kit.TrashOf(t, w.s, "line")[0].Item))
				if r.Branch != "gone" || r.Messages+r.Missing != 4 {
					t.Errorf("%+v", r)
				}
				for _, lost := range []string{"nothing", "index.json", "index.json journal-*"} {
					for _, pattern := range strings.Fields(lost) {
						paths, _ := filepath.Glob(filepath.Join(folder, pattern))
						for _, path := range paths {
							kit.Check(t, os.Remove(path))
						}
					}
					again := kit.Must[*engine.Context](t)(w.s.Context(ctx, c.ID()))
					got := kit.Load(t, kit.Must[*engine.Branch](t)(again.Branch("gone")))
					if len(got) != len(want) {
						t.Fatalf("without %s: %d messages", lost, len(got))
					}
					for i, m := range got {
						if i == 2 && !isErased(m) ||
							i != 2 && (m.Unavailable != nil || m.ID.String()+string(m.Stored) != want[i]) {
							t.Errorf("without %s: message %d is %s, %v", lost, i, m.ID, m.Unavailable)
						}
					}
					kit.Check(t, again.Close())
				}
				if found := kit.FilesWith(t, w.s.Path(), kit.Canary); len(found) > 0 {
					t.Errorf("restored, the canary is in %v", found)
				}
			})
		}
	}
}

// isErased reports whether a message was erased, in its place or in an item of the format before.
func isErased(m *engine.Message) bool {
	return errors.Is(m.Unavailable, engine.ErrErased) || bytes.HasPrefix(m.Stored, []byte(`{"unavailable":`))
}

// TestEraseCollectedAndThere: a message on a removed line that is, under the same id, on another line in the same
// folder is erased in both places.
func TestEraseCollectedAndThere(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t)
	kit.Fill(t, c.Active(), 1)
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: kit.Secret(10)})
	kit.Check(t, c.Active().Rewind(ctx, 1))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: kit.Secret(20)})
	item := kit.TrashOf(t, c.Store, "line")[0].Item
	_, err := kit.Erase(c.Store, c.ID(), kit.TestID(7), erase.Options{})
	kit.Check(t, err, c.Refresh(ctx))
	if ms := kit.Load(t, c.Active()); len(ms) != 2 || !errors.Is(ms[1].Unavailable, engine.ErrErased) {
		t.Errorf("%+v", ms)
	}
	kit.Check(t, c.Active().Rewind(ctx, 1))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"anew":1}`)}) // takes the file's name
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, c.Store, item))
	kit.Check(t, c.Refresh(ctx))
	if ms := kit.Load(t, c.Active()); len(ms) != 2 || ms[1].Unavailable != nil {
		t.Errorf("%+v", ms)
	}
	if ms := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(r.Branch))); len(ms) != 2 || ms[1].ID != kit.TestID(7) ||
		!errors.Is(ms[1].Unavailable, engine.ErrErased) {
		t.Errorf("%+v", ms)
	}
	if found := kit.FilesWith(t, filepath.Dir(folder), kit.Canary); len(found) > 0 {
		t.Errorf("the canary is in %v", found)
	}
}

// TestRestoreErased: what was erased stays so when an item that still has the message is restored.
func TestRestoreErased(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, want := kit.NewOrphan(t, s)
	moved := kit.CollectOld(t, c)
	item := filepath.Join(dir, moved[0].Path)
	saved := t.TempDir()
	kit.Check(t, os.CopyFS(saved, os.DirFS(item)))
	id := uuid.MustParse(want[3][:36])
	_, err := kit.Erase(s, c.ID(), id, erase.Options{})
	kit.Check(t, err)
	for n := range 2 {
		_, err := trash.Restore(ctx, s, moved[0].Item)
		if n == 0 && err != nil || n > 0 && !errors.Is(err, engine.ErrConflict) {
			t.Errorf("restore %d: %v", n, err)
		}
		kit.Check(t, c.Refresh(ctx))
		for i, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch("gone"))) {
			if isErased(m) != (i == 3) || i != 3 && !strings.HasPrefix(want[i], m.ID.String()) {
				t.Errorf("restore %d, message %d: %s, %v", n, i, m.ID, m.Unavailable)
			}
		}
		if n == 0 {
			kit.Check(t, os.CopyFS(item, os.DirFS(saved)))
		}
	}
	kit.Check(t, c.Close())
}

// TestEraseBesideACollection: nobody collects or restores while a message is erased, since he would write what he has
// read of it.
func TestEraseBesideACollection(t *testing.T) {
	s, _ := kit.NewStore(t, engine.WithLockTimeout(1))
	c, want := kit.NewOrphan(t, s)
	lock := s.FS.Lock(engine.CollectionLock)
	kit.Check(t, lock.Acquire(context.Background()))
	id := uuid.MustParse(want[3][:36])
	if _, err := kit.Erase(s, c.ID(), id, erase.Options{}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("%v, wanted ErrLocked", err)
	}
	kit.Check(t, lock.Release(), lock.Close(), c.Close())
}

// TestEraseCollectedCut cuts the power at every operation of an erase of a message that only a removed line has. A
// second erase finishes it, and the line comes back with its positions.
func TestEraseCollectedCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made := crashfs.New()
	s, err := kit.Init("disk", engine.WithFS(made), engine.WithFoldBytes(-1), engine.WithRetain(2), engine.WithTextThreshold(1<<10))
	kit.Check(t, err)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Fill(t, c.Active(), 1)
	gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
	kit.Fill(t, gone, 1)
	kit.Append(t, gone, engine.Draft{ID: kit.TestID(2), Body: kit.Secret(3000)})
	kit.Fill(t, gone, 1)
	want := kit.Bodies(t, gone)
	kit.Check(t, c.Remove(ctx, "gone"), c.Close(), s.Close())
	verify := func(disk *crashfs.FS) error {
		s, err := kit.OpenCrash(disk)
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{}); err != nil {
			return err
		}
		item, err := kit.FindItem(s, "gone")
		if err == nil {
			_, err = trash.Restore(ctx, s, item.Item)
		}
		if err != nil {
			return err
		}
		if found, err := kit.FilesWithCanary(disk.Crash(crashfs.Lose)); err != nil || len(found) > 0 {
			return fmt.Errorf("the canary is in %v, %w", found, err)
		}
		c, err := s.Context(ctx, kit.TestID(60000))
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := c.Branch("gone")
		if err != nil {
			return err
		}
		got, err := b.Load(ctx)
		if err != nil || len(got) != len(want) {
			return fmt.Errorf("%d messages, %w", len(got), err)
		}
		for i, m := range got {
			if i == 2 && !errors.Is(m.Unavailable, engine.ErrErased) ||
				i != 2 && (m.Unavailable != nil || m.ID.String()+string(m.Stored) != want[i]) {
				return fmt.Errorf("message %d: %s, %w", i, m.ID, m.Unavailable)
			}
		}
		return nil
	}
	for k := range kit.Cuts(1) {
		disk := made.Clone()
		s, err := kit.OpenCrash(disk)
		kit.Check(t, err)
		disk.CutAt(len(disk.Ops()) + k)
		_, err = kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{})
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
			if err := verify(disk.Crash(choice)); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
		}
		if !disk.PowerCut() {
			break
		}
	}
}
