package erase_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// unreadableFS fails to open a file while it is not readable.
type unreadableFS struct {
	vfs.FS
	file string // the end of its path
	fail *bool
}

func (f *unreadableFS) OpenFile(name string, flag int) (vfs.File, error) {
	if *f.fail && strings.HasSuffix(name, f.file) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EIO}
	}
	return f.FS.OpenFile(name, flag)
}

func (f *unreadableFS) Sub(name string) (vfs.FS, error) {
	sub, err := f.FS.Sub(name)
	return &unreadableFS{sub, f.file, f.fail}, err
}

// onlyFiles erases another message, after which no journal has a copy of the rest, and returns the path of moment 10.
func onlyFiles(t *testing.T, s *engine.Store) (momentFile string) {
	t.Helper()
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(4), erase.Options{Shared: true}); err != nil {
		t.Fatal(err)
	}
	return kit.TestID(60000).String() + "/messages/branch-notes/" + kit.TestID(10).String() + ".json"
}

// unreadable are the ways in which the file of a moment cannot be read for a while.
var unreadable = map[string]func(t *testing.T, disk *crashfs.FS, fail *bool, file string) (mend func()){
	"an I/O error": func(_ *testing.T, _ *crashfs.FS, fail *bool, _ string) func() {
		*fail = true
		return func() { *fail = false }
	},
	"moved aside": func(t *testing.T, disk *crashfs.FS, _ *bool, file string) func() {
		kit.Check(t, disk.Rename(file, ".aside"))
		return func() { kit.Check(t, disk.Rename(".aside", file)) }
	},
	"moved aside, and a repair": func(t *testing.T, disk *crashfs.FS, _ *bool, file string) func() {
		kit.Check(t, disk.Rename(file, ".aside"))
		s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		kit.Finish(t, s.Repair(t.Context(), nil, engine.CheckOptions{}))
		kit.Check(t, s.Close())
		return func() { kit.Check(t, disk.Rename(".aside", file)) }
	},
	"damaged": func(t *testing.T, disk *crashfs.FS, _ *bool, file string) func() {
		whole := kit.Must[[]byte](t)(vfs.ReadFile(disk, file, 1<<20))
		damaged := slices.Clone(whole)
		copy(damaged[len(damaged)/2:], "\x01\x02\x03")
		kit.Check(t, disk.Replace(file, damaged))
		return func() { kit.Check(t, disk.Replace(file, whole)) }
	},
}

// TestEraseUnreadableMoment: an erase says which moments it could not examine, and the next one erases them.
func TestEraseUnreadableMoment(t *testing.T) {
	t.Parallel()
	for name, breaks := range unreadable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, fail := crashfs.New(), false
			newMomentStore(t, disk)
			s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(&unreadableFS{disk, kit.TestID(10).String() + ".json", &fail})))
			file := onlyFiles(t, s)
			kit.Check(t, s.Close())
			mend := breaks(t, disk, &fail, file)
			s = kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(&unreadableFS{disk, kit.TestID(10).String() + ".json", &fail})))
			note := kit.TestID(60000).String() + "/" + ctxfolder.ErasingFile
			for range 2 { // it says so each time
				done, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true})
				if !errors.Is(err, engine.ErrUnexamined) {
					t.Fatal(err)
				}
				said := slices.ContainsFunc(done, func(r erase.Removal) bool { return r.ID == kit.TestID(10) && r.Problem != nil })
				if _, err := disk.Lstat(note); err != nil || !said {
					t.Errorf("the note: %v; what was said: %v", err, done)
				}
			}
			mend()
			// An erase of another message looks again.
			if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(4), erase.Options{Shared: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := disk.Lstat(note); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the note: %v", err)
			}
			kit.Check(t, s.Close())
			if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
				t.Errorf("the canary is in %v, %v", found, err)
			}
			if err := verifyMoments(disk); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEraseUnreadableMomentToo: whoever cannot mend a moment erases it too, and the erase is complete.
func TestEraseUnreadableMomentToo(t *testing.T) {
	t.Parallel()
	disk, fail := crashfs.New(), false
	s, _ := newMomentStore(t, disk)
	unreadable["damaged"](t, disk, &fail, onlyFiles(t, s))
	both := []uuid.UUID{kit.TestID(2), kit.TestID(10)}
	kit.Finish(t, erase.Messages(t.Context(), s, kit.TestID(60000), both, erase.Options{Shared: true}))
	if _, err := disk.Lstat(kit.TestID(60000).String() + "/" + ctxfolder.ErasingFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note: %v", err)
	}
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
		t.Errorf("the canary is in %v, %v", found, err)
	}
}

// TestPurgeUnreadableMoment: a purge cuts no message while it cannot tell which moments were made from it.
func TestPurgeUnreadableMoment(t *testing.T) {
	t.Parallel()
	for name, breaks := range unreadable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, fail := crashfs.New(), false
			newMomentStore(t, disk)
			s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(&unreadableFS{disk, kit.TestID(10).String() + ".json", &fail})))
			file := onlyFiles(t, s)
			c := openMain(t, s)
			for _, name := range []string{"main", "alt"} {
				kit.Check(t, kit.Must[*engine.Branch](t)(c.Branch(name)).Rewind(t.Context(), 1))
			}
			kit.Check(t, c.Close(), s.Close())
			mend := breaks(t, disk, &fail, file)
			s = kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(&unreadableFS{disk, kit.TestID(10).String() + ".json", &fail})))
			s.OnCut(func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error {
				return erase.MadeFrom(ctx, s, c, messages)
			})
			purge := func() (err error) {
				for _, failed := range trash.Collect(t.Context(), s, trash.CollectOptions{}) {
					err = errors.Join(err, failed)
				}
				return err
			}
			if err := purge(); !errors.Is(err, engine.ErrUnexamined) {
				t.Errorf("the purge: %v", err)
			}
			mend()
			if err := momentsHaveSources(disk); err != nil {
				t.Error(err)
			}
			kit.Check(t, purge())
			if err := verifyMoments(disk); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEraseBesideLostMessage: a message of the conversation that cannot be read is no moment, even if a removed branch
// shows it too.
func TestEraseBesideLostMessage(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{ID: kit.TestID(60000)}))
	for n := 1; n <= 3; n++ {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: []byte(`{"content":"` + kit.Canary + `"}`)})
	}
	kit.Must[*engine.Branch](t)(c.Active().Fork(t.Context(), "alt", 3))
	kit.Check(t, c.Remove(t.Context(), "alt"), c.Close())
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(3), erase.Options{}); err != nil { // no journal has the others
		t.Fatal(err)
	}
	kit.Check(t, disk.Remove(kit.TestID(60000).String()+"/messages/branch-main/"+kit.TestID(1).String()+".json"))
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{}); err != nil {
		t.Fatal(err)
	}
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
		t.Errorf("the canary is in %v, %v", found, err)
	}
	kit.Check(t, s.Close())
}

// TestEraseMovedSources: another program moved the ids in a moment's "from" to a blob, and still the moment is erased
// with its source. The engine leaves them in place, whatever its threshold.
func TestEraseMovedSources(t *testing.T) {
	t.Parallel()
	for name, threshold := range map[string]int64{"the engine": 0, "another program": 1 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := kit.NewStore(t, engine.WithTextThreshold(threshold))
			c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{}))
			a := kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(2), Body: []byte(`{"content":"` + kit.Canary + `"}`)})
			kind := ctxfolder.Member{Key: "kind", Value: []byte(`"moments"`)}
			b := kit.Must[*engine.Branch](t)(c.NewBranch(t.Context(), "moments", kind))
			d := momentOf(10, 2, kit.Canary+" as a moment")
			if name == "another program" {
				sum, _, err := s.Blobs.Put([]byte(kit.TestID(2).String()))
				kit.Check(t, err)
				moved := `{"$blob":"` + sum.String() + `","size":36}`
				kit.Append(t, b, d)
				kit.Check(t, c.Close())
				editMoment(t, dir, kit.TestID(10), `"`+kit.TestID(2).String()+`"`, moved)
			} else {
				kit.Append(t, b, d)
				stored := kit.Load(t, b)[0]
				if !strings.Contains(string(stored.Stored), kit.TestID(2).String()) {
					t.Errorf("stored as %s", stored.Stored)
				}
				kit.Check(t, c.Close())
			}
			kit.Finish(t, erase.Messages(t.Context(), s, c.ID(), []uuid.UUID{a.ID}, erase.Options{}))
			kit.Check(t, s.Close())
			if found := kit.FilesWith(t, dir, kit.Canary); len(found) > 0 {
				t.Errorf("the canary is in %v", found)
			}
		})
	}
}

// editMoment replaces a text in the file of a moment, as another program does.
func editMoment(t *testing.T, dir string, id uuid.UUID, from, to string) {
	t.Helper()
	paths := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "*", "messages", "branch-moments", id.String()+".json")))
	if len(paths) != 1 {
		t.Fatal(paths)
	}
	b := string(kit.Must[[]byte](t)(os.ReadFile(paths[0])))
	edited := strings.Replace(b, from, to, 1)
	if edited == b {
		t.Fatalf("%s is not in %s", from, b)
	}
	kit.Check(t, os.WriteFile(paths[0], []byte(edited), 0o600))
}
