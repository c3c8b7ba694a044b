package erase_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// momentOf is a moment that was made from a message.
func momentOf(id, from int, text string) engine.Draft {
	body := fmt.Sprintf(`{"type":"decision","content":%q,"from":[7,"none",%q]}`, text, kit.TestID(from))
	return engine.Draft{ID: kit.TestID(id), Role: "moment", Type: "decision", Body: []byte(body)}
}

func openMain(t *testing.T, s *engine.Store) *engine.Context {
	t.Helper()
	return kit.Must[*engine.Context](t)(s.Context(t.Context(), kit.TestID(60000)))
}

// newMomentStore is a store with a message to erase, 2, and moments that were made from it: 10, whose first version is
// in the trash, and 12 on a removed branch. 11 was made from another message.
func newMomentStore(t *testing.T, disk *crashfs.FS) (s *engine.Store, want kit.Transcript) {
	t.Helper()
	s, want = kit.NewCanaryStore(t, disk)
	addMoments(t, s)
	return s, want
}

func addMoments(t *testing.T, s *engine.Store) {
	t.Helper()
	c := openMain(t, s)
	kind := ctxfolder.Member{Key: "kind", Value: []byte(`"moments"`)}
	gone := kit.Must[*engine.Branch](t)(c.NewBranch(t.Context(), "moments", kind))
	kit.Append(t, gone, momentOf(12, 2, kit.Canary))
	if err := c.Remove(t.Context(), "moments"); err != nil {
		t.Fatal(err)
	}
	b := kit.Must[*engine.Branch](t)(c.NewBranch(t.Context(), "notes", kind))
	kit.Append(t, b, momentOf(10, 2, kit.Canary+" first"))
	kit.Append(t, b, momentOf(11, 1, "kept"))
	if err := b.Replace(t.Context(), kit.TestID(10), momentOf(10, 2, kit.Canary)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// verifyMoments reports an error unless the moments of message 2 are erased and the other one is there.
func verifyMoments(disk *crashfs.FS) error {
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(context.Background(), kit.TestID(60000))
	if err != nil {
		return err
	}
	defer c.Close()
	b, err := c.Branch("notes")
	if err != nil {
		return err
	}
	got, err := b.Load(context.Background())
	if err != nil || len(got) != 2 || !errors.Is(got[0].Unavailable, engine.ErrErased) || got[1].Unavailable != nil {
		return fmt.Errorf("%d moments, %v, %w", len(got), got, err)
	}
	return nil
}

func TestEraseMoments(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s, want := newMomentStore(t, disk)
	planned := map[uuid.UUID]bool{}
	plan := erase.Options{Shared: true, DryRun: true}
	for x, err := range erase.Messages(t.Context(), s, kit.TestID(60000), []uuid.UUID{kit.TestID(2)}, plan) {
		if err != nil {
			t.Fatal(err)
		}
		planned[x.ID] = true
	}
	if !planned[kit.TestID(10)] || !planned[kit.TestID(12)] || planned[kit.TestID(11)] {
		t.Errorf("a dry run names %v", planned)
	}
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true}); err != nil {
		t.Fatal(err)
	}
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
		t.Errorf("the canary is in %v, %v", found, err)
	}
	if err := errors.Join(verifyMoments(disk), kit.VerifyAllBut(disk, want, kit.TestID(2), true)); err != nil {
		t.Error(err)
	}
}

// TestEraseArchivedMoments: moments in compressed segments are erased too.
func TestEraseArchivedMoments(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s, _ := newMomentStore(t, disk)
	c := openMain(t, s)
	if done, err := kit.Archive(t.Context(), c, archiving.Options{}); err != nil || done.Messages < 5 {
		t.Fatal(done, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true}); err != nil {
		t.Fatal(err)
	}
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
		t.Errorf("the canary is in %v, %v", found, err)
	}
	if err := verifyMoments(disk); err != nil {
		t.Error(err)
	}
}

// TestEraseMomentsCut cuts the power at every operation of an erase. To erase the message again erases its moments too,
// whatever the disk holds.
func TestEraseMomentsCut(t *testing.T) {
	t.Parallel()
	states := 0
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		s, want := newMomentStore(t, disk)
		disk.CutAt(len(disk.Ops()) + k)
		_, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true})
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(k))} {
			states++
			after := disk.Crash(choice)
			err := verifyErase(after, want, over)
			if err == nil {
				err = verifyMoments(after)
			}
			if err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

// betweenFS calls a function once, after an erase has looked for messages and before it marks them.
type betweenFS struct {
	vfs.FS
	once func()
}

func (b *betweenFS) SyncAll() error {
	b.once()
	return b.FS.SyncAll()
}

func (b *betweenFS) Sub(name string) (vfs.FS, error) {
	sub, err := b.FS.Sub(name)
	return &betweenFS{sub, b.once}, err
}

// TestMomentMeanwhile: another process adds a moment while an erase runs.
func TestMomentMeanwhile(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	newMomentStore(t, disk)
	added := false
	between := &betweenFS{disk, sync.OnceFunc(func() {
		other := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		c := openMain(t, other)
		b := kit.Must[*engine.Branch](t)(c.Branch("notes"))
		kit.Append(t, b, momentOf(13, 2, kit.Canary+" late"))
		if err := errors.Join(c.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		added = true
	})}
	s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(between)))
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true}); err != nil {
		t.Fatal(err)
	}
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 || !added {
		t.Errorf("added: %v; the canary is in %v, %v", added, found, err)
	}
}

// TestPurgeErasesRemovedMoments: a purge erases moments of what it removes on removed branches too, whose grace period
// runs, where no branch has moments any more.
func TestPurgeErasesRemovedMoments(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s, _ := newMomentStore(t, disk)
	s.OnCut(func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error {
		return erase.MadeFrom(ctx, s, c, messages)
	})
	c := openMain(t, s)
	for _, name := range []string{"main", "alt"} {
		if err := kit.Must[*engine.Branch](t)(c.Branch(name)).Rewind(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Remove(t.Context(), "notes"), c.Close()); err != nil {
		t.Fatal(err)
	}
	var rewound []uuid.UUID
	for x, err := range trash.List(t.Context(), s, kit.TestID(60000)) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Kind == ctxfolder.TrashLine && (x.Name == "main" || x.Name == "alt") {
			rewound = append(rewound, x.Item)
		}
	}
	for _, err := range trash.Purge(t.Context(), s, rewound, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
	}
	found, err := kit.FilesWithCanary(disk)
	found = slices.DeleteFunc(found, func(path string) bool { return strings.HasPrefix(path, "blobs/") }) // a collection sweeps them
	if err != nil || len(rewound) == 0 || len(found) > 0 {
		t.Errorf("%d lines purged; the canary is in %v, %v", len(rewound), found, err)
	}
}

// TestPurgeErasesMoments: a purge of what a rewind took away erases the moments that were made from it first. A cut in
// between leaves no moment without its source.
func TestPurgeErasesMoments(t *testing.T) {
	t.Parallel()
	purge := func(s *engine.Store) error {
		s.OnCut(func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error {
			return erase.MadeFrom(ctx, s, c, messages)
		})
		for _, err := range trash.Collect(context.Background(), s, trash.CollectOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	states := 0
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		s, _ := newMomentStore(t, disk)
		c := openMain(t, s)
		for _, name := range []string{"main", "alt"} {
			if err := kit.Must[*engine.Branch](t)(c.Branch(name)).Rewind(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		disk.CutAt(len(disk.Ops()) + k)
		err := purge(s)
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		states++
		after := disk.Crash(crashfs.Random(uint64(k)))
		if err := momentsHaveSources(after); err != nil {
			t.Fatalf("power cut at operation %d (%s): %v", k, kit.LastOp(disk), err)
		}
		again := kit.Must[*engine.Store](t)(kit.OpenCrash(after))
		if err := errors.Join(purge(again), again.Close(), verifyMoments(after)); err != nil {
			t.Fatalf("purge after a power cut at operation %d (%s): %v", k, kit.LastOp(disk), err)
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

// momentsHaveSources reports an error if the moment of message 2 can be read, but the message is on no line.
func momentsHaveSources(disk vfs.FS) error {
	s, err := kit.OpenCrash(disk.(*crashfs.FS))
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(context.Background(), kit.TestID(60000))
	if err != nil {
		return err
	}
	defer c.Close()
	b, err := c.Branch("notes")
	if err != nil {
		return err
	}
	got, err := b.Load(context.Background())
	if err != nil {
		return err
	}
	if got[0].Unavailable != nil {
		return nil
	}
	for _, l := range c.Current().Lines {
		for entry, err := range c.Index.All(context.Background(), l.ID, 0, 1<<40) {
			if err != nil {
				return err
			}
			if entry.ID == kit.TestID(2) {
				return nil
			}
		}
	}
	return errors.New("the moment has lost its source")
}

// TestPurgeFinishesErase: a purge whose erasure of moments was interrupted, at each operation, erases them when it is
// done again: the rows may say already that they are erased, while their files are there.
func TestPurgeFinishesErase(t *testing.T) {
	t.Parallel()
	interrupted := 0
	for k := 1; ; k += kit.Stride() {
		disk := crashfs.New()
		s, _ := newMomentStore(t, disk)
		erased := func() error {
			return erase.MadeFrom(context.Background(), s, kit.TestID(60000), []uuid.UUID{kit.TestID(2)})
		}
		n, fired := 0, false
		disk.Fail(kit.Serialise(func(o crashfs.Op) error {
			switch n++; {
			case n < k || o.Kind == crashfs.KindSync || o.Kind == crashfs.KindDatasync || o.Kind == crashfs.KindSyncAll:
				return nil // a failed sync would be reported to the next process, too
			}
			fired = true // nothing works any more, as in a process that was killed
			return syscall.EIO
		}))
		_ = erased()
		disk.Fail(nil)
		kit.Check(t, s.Close())
		if !fired {
			break
		}
		interrupted++
		s = kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		kit.Check(t, erased(), s.Close())
		if err := verifyMoments(disk); err != nil {
			t.Fatalf("from operation %d on: %v", k, err)
		}
		for _, path := range kit.Must[[]string](t)(kit.FilesWithCanary(disk)) {
			if strings.Contains(path, kit.TestID(10).String()) || strings.Contains(path, kit.TestID(12).String()) {
				t.Fatalf("from operation %d on: a moment is still in %s", k, path)
			}
		}
	}
	if interrupted == 0 {
		t.Error("nothing was interrupted")
	}
}
