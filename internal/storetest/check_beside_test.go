package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestCheckBesideErase: between the look at a message and that at its payload another process erases both. Nothing is
// wrong then.
func TestCheckBesideErase(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithTextThreshold(100)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	body := fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("long ", 100))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: body})
	kit.Check(t, c.Seal(ctx))
	done := false
	beside := &hookedFS{FS: disk, remove: func(string) {}, open: func(name string) {
		if !done && strings.HasPrefix(name, "blobs/") {
			done = true
			kit.Finish(t, erase.Messages(ctx, s, c.ID(), []uuid.UUID{kit.TestID(1)}, erase.Options{}))
		}
	}}
	checks := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(beside), engine.WithoutPause()))
	kit.NothingFound(t, "erased", checks, checking.Options{})
	if !done {
		t.Error("no blob was looked at")
	}
	kit.Check(t, checks.Close(), c.Close(), s.Close())
}

// TestCheckBesideArchive: while a check looks closely at what did not look right, one message that was edited and one
// whose file was elsewhere for a while, somebody archives, and appends meanwhile. The check tells of the one that was edited
// alone.
func TestCheckBesideArchive(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	defer c.Close()
	for n := range 3 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d}`, n)})
	}
	kit.Check(t, c.Seal(ctx))
	path := func(n int) string { return c.ID().String() + "/" + c.Dir.MessagePath("branch-main", kit.TestID(n)) }
	raw := kit.Must[[]byte](t)(vfs.ReadFile(disk, path(0), 1<<20))
	kit.Check(t, disk.Remove(path(0)), vfs.WriteNew(disk, path(0), bytes.Replace(raw, []byte(`{"n":0}`), []byte(`{"n":9}`), 1)))
	away := c.ID().String() + "/messages/branch-main/.away"
	kit.Check(t, disk.Rename(path(1), away))
	done := false
	beside := &hookedFS{FS: disk, remove: func(string) {}, open: func(name string) {
		if !done && strings.HasPrefix(name, kit.TestID(0).String()) {
			done = true
			kit.Check(t, disk.Rename(away, path(1)))
			appended := false
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{Progress: func(int64, int64) {
				if !appended {
					kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":4}`)})
				}
				appended = true
			}}))
		}
	}}
	checks := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(beside), engine.WithoutPause()))
	defer checks.Close()
	for f, err := range checking.Check(ctx, checks, nil, checking.Options{}) {
		if kit.Check(t, err); f.Kind != integrity.KindEdited || f.ID != kit.TestID(0) {
			t.Errorf("%+v", f)
		}
	}
	if !done {
		t.Error("nothing was archived meanwhile")
	}
}

// TestCheckBesideRewind: between the look at the history and that at the files somebody takes the messages away that a
// branch began behind, and the branch before that.
func TestCheckBesideRewind(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	defer c.Close()
	kit.Fill(t, c.Active(), 6)
	kit.Fill(t, kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 5)), 2)
	done := false
	beside := &hookedFS{FS: disk, remove: func(string) {}, open: func(name string) {
		if !done && name == ctxfolder.ErasingFile { // it is looked for in between
			done = true
			kit.Check(t, c.Remove(ctx, "alt"), c.Active().Rewind(ctx, 1))
			for _, err := range trash.Collect(ctx, s, trash.CollectOptions{Contexts: []uuid.UUID{c.ID()}, Grace: time.Hour}) {
				kit.Check(t, err)
			}
		}
	}}
	checks := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(beside), engine.WithoutPause()))
	defer checks.Close()
	kit.NothingFound(t, "rewound", checks, checking.Options{})
	if !done {
		t.Error("nothing was rewound meanwhile")
	}
}

// TestCheckBesideSeal: a payload of two contexts has no blob yet when the first of them is looked at, and no log has it
// any more when the second one is.
func TestCheckBesideSeal(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, kit.Manual(100)...)
	var contexts []*engine.Context
	for n := range 2 {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + n)}))
		defer c.Close()
		kit.Append(t, c.Active(), engine.Draft{Body: fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("long ", 100))})
		contexts = append(contexts, c)
	}
	for _, c := range contexts {
		c.PutBlobs()
	}
	kit.Check(t, os.RemoveAll(dir+"/blobs"))
	sealed := false
	kit.NothingFound(t, "sealed in between", s, checking.Options{Progress: func(p checking.Progress) {
		if p.Contexts == 1 && !sealed {
			sealed = true
			for _, c := range contexts {
				kit.Check(t, c.Seal(ctx))
			}
		}
	}})
	if !sealed {
		t.Error("nothing was sealed in between")
	}
}

// TestCheckUnsealed: a blob that is missing is nothing wrong while a log has its payload: it may never have been there.
// Nor is a message file, which the seal makes. What is missing after that is told.
func TestCheckUnsealed(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, kit.Manual(100)...)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("long ", 100))})
	c.PutBlobs()
	file := dir + "/" + c.ID().String() + "/" + c.Dir.MessagePath("branch-main", kit.TestID(1))
	expect := func(when, want string) {
		t.Helper()
		var found []string
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
			kit.Check(t, err)
			found = append(found, string(f.Severity)+" "+string(f.Kind))
		}
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	lose := func() { kit.Check(t, os.Remove(file), os.Remove(kit.BlobFiles(t, dir)[0])) }
	lose()
	expect("not sealed", "info message-missing")
	kit.Check(t, c.Seal(ctx))
	expect("sealed", "")
	lose() // fails unless they are there again
	expect("lost", "warning message-missing, error blob-missing")
	kit.Finish(t, checking.Repair(ctx, s, nil, checking.Options{}))
	expect("repaired", "error blob-missing")
}

// TestCheckBesideAppend: a message file that is missing may be on its way while a process is about to make files.
func TestCheckBesideAppend(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithSealBytes(-1), engine.WithFiles(engine.FilesHeld))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	expect := func(when string, want int) {
		t.Helper()
		checks := kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithoutPause()))
		var found []integrity.Finding
		for f, err := range checking.Check(ctx, checks, nil, checking.Options{}) {
			kit.Check(t, err)
			found = append(found, f)
		}
		if len(found) != want {
			t.Errorf("%s: %+v", when, found)
		}
		kit.Check(t, checks.Close())
	}
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: []byte(`{"n":1}`)})
	expect("to come", 0)
	kit.Check(t, c.Flush(ctx))
	expect("there", 0)
	kit.Check(t, os.Remove(dir+"/"+c.ID().String()+"/messages/branch-main/"+kit.TestID(1).String()+".json"))
	expect("removed", 1)
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(2), Body: []byte(`{"n":2}`)})
	expect("removed, and another to come", 0)
}

// TestCheckBesideWriters: four writers with handles of their own append 10,000 messages, replace, fork, rename and
// seal; a check beside them tells nothing that is not so.
func TestCheckBesideWriters(t *testing.T) {
	t.Parallel()
	const writers = 4
	each := 2500
	if testing.Short() {
		each = 1000
	}
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithSealBytes(64<<10), engine.WithTextThreshold(300))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	var running sync.WaitGroup
	var left atomic.Int32
	left.Store(writers)
	errs := make([]error, writers)
	for w := range writers {
		running.Go(func() {
			defer left.Add(-1)
			errs[w] = func() error {
				s, err := kit.Open(dir, engine.WithSealBytes(64<<10), engine.WithTextThreshold(300),
					engine.WithFiles([]engine.MessageFiles{engine.FilesBehind, engine.FilesOnReturn}[w%2]))
				if err != nil {
					return err
				}
				defer s.Close()
				c, err := s.Context(ctx, c.ID())
				if err != nil {
					return err
				}
				name := fmt.Sprint("writer ", w)
				b, err := c.NewBranch(ctx, name)
				if err != nil {
					return err
				}
				for i := 0; i < each; {
					drafts := make([]engine.Draft, 1+i%20)
					for k := range drafts {
						drafts[k].Body = fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, i+k, strings.Repeat("x", 20*((i+k)%20)))
					}
					done, err := b.AppendBatch(ctx, drafts)
					if err != nil {
						return err
					}
					i += len(done)
					switch i % 7 {
					case 0:
						err = b.Replace(ctx, done[0].ID, engine.Draft{Body: []byte(`{"replaced":true}`)}, engine.Shared())
					case 1:
						_, err = b.Fork(ctx, fmt.Sprint(name, " at ", i), int64(i/2))
					case 2:
						to := fmt.Sprint("writer ", w, " ", i)
						if err = c.Rename(ctx, name, to); err == nil {
							name = to
							b, err = c.Branch(name)
						}
					}
					if err != nil {
						return err
					}
				}
				return c.Close()
			}()
		})
	}
	checks := 0
	for more := true; more; checks++ {
		more = left.Load() > 0 // the last one is after the end
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: checks%2 == 1}) {
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("check %d: %+v", checks, f)
		}
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d checks", checks)
}

// TestCheckBesideRemovals: a context that is removed between being listed and being looked at is no finding, nor
// anything to be repaired.
func TestCheckBesideRemovals(t *testing.T) {
	ctx := context.Background()
	for name, look := range map[string]func(s *engine.Store, o checking.Options) (found []string){
		"check": func(s *engine.Store, o checking.Options) (found []string) {
			for f, err := range checking.Check(ctx, s, nil, o) {
				found = append(found, fmt.Sprint(f, err))
			}
			return found
		},
		"repair": func(s *engine.Store, o checking.Options) (found []string) {
			for r, err := range checking.Repair(ctx, s, nil, o) {
				found = append(found, fmt.Sprint(r, err))
			}
			return found
		},
	} {
		s, _ := kit.NewStore(t)
		ids := map[uuid.UUID]bool{}
		for range 4 {
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			ids[c.ID()] = true
			kit.Check(t, c.Close())
		}
		found := look(s, checking.Options{Progress: func(p checking.Progress) {
			for id := range ids {
				if id != p.Context {
					kit.Must[engine.TrashItem](t)(s.Delete(ctx, id))
				}
			}
			clear(ids)
		}})
		if len(found) > 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
}
