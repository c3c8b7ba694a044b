// Package storetest is the test kit of the engine and of the packages above it. Tests import it as kit.
//
// It makes stores and contexts ([NewStore], [NewContext]), fills them ([Append], [Fill]), fails a test on an error
// ([Must], [Check]), and reads what a disk holds ([Tree], [BlobFiles], [FilesWith]). A [Patient] is a context that a
// test damages and repairs. [RunSteps] and [Verify] run a workload on a simulated disk whose power is cut. A
// [Transcript] says what a context must show.
//
// The tests in this folder cover several packages at once: damage and repair, power cuts, disk faults, several
// processes, property tests against a model, and costs.
package storetest

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Manual returns the options of a store that seals and pauses only when a test says so. Texts of at least threshold
// bytes become payloads.
func Manual(threshold int64, more ...engine.Option) []engine.Option {
	return append([]engine.Option{engine.WithSealBytes(-1), engine.WithTextThreshold(threshold), engine.WithoutPause()}, more...)
}

// Open opens a store as the public API does: a legacy context in it is migrated when it is opened.
func Open(dir string, opts ...engine.Option) (*engine.Store, error) {
	return engine.Open(dir, withDefaults(opts)...)
}

// Init makes a store and opens it as Open does.
func Init(dir string, opts ...engine.Option) (*engine.Store, error) {
	return engine.Init(dir, withDefaults(opts)...)
}

// withDefaults lets tests look at message files right after an append. Those that meet the files behind the commits say
// so with another [engine.WithFiles].
func withDefaults(opts []engine.Option) []engine.Option {
	return append([]engine.Option{engine.OpenLegacy(migrate.Open), engine.WithFiles(engine.FilesOnReturn)}, opts...)
}

// NewStore makes a store in a temporary folder, and returns it with the folder.
func NewStore(t *testing.T, opts ...engine.Option) (*engine.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := Init(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

// NewContext makes a context in a new store, and returns it with its folder.
func NewContext(t *testing.T, opts ...engine.Option) (*engine.Context, string) {
	t.Helper()
	s, dir := NewStore(t, opts...)
	c, err := s.Create(context.Background(), engine.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, filepath.Join(dir, c.ID().String())
}

// List returns the contexts of a store, ordered by id, as a process lists them that has listed nothing before.
func List(t *testing.T, s *engine.Store) []listing.Summary {
	t.Helper()
	return ListBy(t, listing.New(s))
}

// ListBy returns the contexts of the store of a Lister, ordered by id.
func ListBy(t *testing.T, l *listing.Lister) []listing.Summary {
	t.Helper()
	var all []listing.Summary
	for sum, err := range l.List(context.Background(), listing.ListOptions{Kind: listing.AnyKind}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(a, b listing.Summary) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return all
}

// ForgetListCheck removes from the cache of lists when all contexts were examined, so that the next list does so.
func ForgetListCheck(t *testing.T, fsys vfs.FS) {
	t.Helper()
	b := Must[[]byte](t)(vfs.ReadFile(fsys, listing.SummariesFile, 1<<20))
	at := bytes.Index(b, []byte(`"checked":"`)) + len(`"checked":"`)
	f := Must[vfs.File](t)(fsys.OpenFile(listing.SummariesFile, os.O_WRONLY))
	_, err := f.WriteAt([]byte("0000000000000000"), int64(at))
	Check(t, err, f.Close())
}

// SweepAll sweeps the blobs as a collection does, and yields each.
func SweepAll(ctx context.Context, s *engine.Store, grace time.Duration) iter.Seq2[engine.TrashItem, error] {
	return func(yield func(engine.TrashItem, error) bool) {
		release, err := s.LockCollection(ctx)
		if err == nil {
			defer release()
			err = sweep.Run(ctx, s, grace, false, func(t engine.TrashItem) bool { return yield(t, nil) })
		}
		if err != nil {
			yield(engine.TrashItem{}, err)
		}
	}
}

// Sweep sweeps the blobs, and returns what was moved.
func Sweep(t *testing.T, s *engine.Store, grace time.Duration) (moved []engine.TrashItem) {
	t.Helper()
	for x, err := range SweepAll(context.Background(), s, grace) {
		if err != nil {
			t.Fatal(err)
		}
		moved = append(moved, x)
	}
	return moved
}
