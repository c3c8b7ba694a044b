package erase_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// sealedMoment is moment 10, of which only a segment has a copy.
type sealedMoment struct {
	segment string
	view    []byte // which was removed
}

var momentView = kit.TestID(60000).String() + "/messages/branch-notes/" + kit.TestID(10).String() + ".json"

// newSealedMoments is a store with a message to erase, 2, and moments, which a segment of their own has: 10 was made from
// that message, 11 from another one.
func newSealedMoments(t *testing.T, disk *crashfs.FS) (s *engine.Store, m sealedMoment) {
	t.Helper()
	s, _ = kit.NewCanaryStore(t, disk)
	c := openMain(t, s)
	kit.Check(t, c.Seal(t.Context()))
	before := segmentsOf(t, disk)
	kind := ctxfolder.Member{Key: "kind", Value: []byte(`"moments"`)}
	b := kit.Must[*engine.Branch](t)(c.NewBranch(t.Context(), "notes", kind))
	kit.Append(t, b, momentOf(10, 2, kit.Canary))
	kit.Append(t, b, momentOf(11, 1, "kept"))
	kit.Check(t, c.Seal(t.Context()), c.Close())
	for _, p := range segmentsOf(t, disk) {
		if !slices.Contains(before, p) {
			m.segment = p
		}
	}
	m.view = kit.Must[[]byte](t)(vfs.ReadFile(disk, momentView, 1<<20))
	kit.Check(t, disk.Remove(momentView))
	return s, m
}

func segmentsOf(t *testing.T, disk *crashfs.FS) (paths []string) {
	t.Helper()
	for e, err := range disk.ReadDir(kit.TestID(60000).String() + "/segments") {
		kit.Check(t, err)
		paths = append(paths, kit.TestID(60000).String()+"/segments/"+e.Name())
	}
	return paths
}

// unreadable are the ways in which moment 10 cannot be read for a while.
var unreadable = map[string]func(t *testing.T, disk *crashfs.FS, m sealedMoment) (mend func()){
	"damaged": damageMoment,
	"damaged, and a repair": func(t *testing.T, disk *crashfs.FS, m sealedMoment) func() {
		t.Helper()
		damageMoment(t, disk, m)
		s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		kit.Finish(t, checking.Repair(t.Context(), s, nil, checking.Options{}))
		kit.Check(t, s.Close())
		return func() { kit.Check(t, disk.Replace(momentView, m.view)) }
	},
}

func damageMoment(t *testing.T, disk *crashfs.FS, m sealedMoment) (mend func()) {
	t.Helper()
	whole := kit.Must[[]byte](t)(vfs.ReadFile(disk, m.segment, 1<<20))
	damaged := slices.Clone(whole)
	at := bytes.Index(damaged, []byte(`"id":"`+kit.TestID(10).String()))
	copy(damaged[at+bytes.Index(damaged[at:], []byte(`"decision"`)):], "\x01\x02\x03")
	kit.Check(t, disk.Replace(m.segment, damaged))
	return func() { kit.Check(t, disk.Replace(m.segment, whole)) }
}

// TestEraseUnreadableMoment: an erase says which moments it could not examine, and the next one erases them.
func TestEraseUnreadableMoment(t *testing.T) {
	t.Parallel()
	for name, breaks := range unreadable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := crashfs.New()
			s, m := newSealedMoments(t, disk)
			kit.Check(t, s.Close())
			mend := breaks(t, disk, m)
			s = kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
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
	disk := crashfs.New()
	s, m := newSealedMoments(t, disk)
	kit.Check(t, s.Close())
	unreadable["damaged, and a repair"](t, disk, m)
	s = kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
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
			disk := crashfs.New()
			s, m := newSealedMoments(t, disk)
			c := openMain(t, s)
			for _, name := range []string{"main", "alt"} {
				kit.Check(t, kit.Must[*engine.Branch](t)(c.Branch(name)).Rewind(t.Context(), 1))
			}
			kit.Check(t, c.Close(), s.Close())
			mend := breaks(t, disk, m)
			s = kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
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
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: []byte(`{"content":"lost"}`)})
	kit.Check(t, c.Seal(t.Context()))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(2), Body: []byte(`{"content":"` + kit.Canary + `"}`)})
	kit.Must[*engine.Branch](t)(c.Active().Fork(t.Context(), "alt", 2))
	kit.Check(t, c.Remove(t.Context(), "alt"), c.Close())
	kit.Check(t, disk.Remove(kit.TestID(60000).String()+"/messages/branch-main/"+kit.TestID(1).String()+".json"))
	for _, p := range segmentsOf(t, disk) {
		b := kit.Must[[]byte](t)(vfs.ReadFile(disk, p, 1<<20))
		kit.Check(t, disk.Replace(p, bytes.Replace(b, []byte(`"lost"`), []byte(`"gone"`), 1)))
	}
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
