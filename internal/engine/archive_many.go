package engine

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// archivedTogether is the number of contexts that a process archives at the same time, so that they share syncs.
	// Each takes some 10 MiB of memory.
	archivedTogether = 16
	// archivedLocked is the number of contexts under one hold of [CollectionLock]. Then others get their turn.
	archivedLocked = 32
	// compressedAtOnce bounds the frames that are compressed at the same time, each of which takes about 40 MiB.
	compressedAtOnce = 4
)

// Archive archives contexts as [Context.Archive] does; without ids, all of the store. A context without the branch of
// the options then has nothing to archive. Archive yields each context, in order. An error does not keep the others from
// being archived.
//
// Archiving one context takes some syncs, each of which waits for the disk. So Archive works on several contexts at a
// time, which share their syncs (see [vfs.ShareSyncs]). When the caller stops, some contexts that were not yielded may be
// archived, too.
//
// Crash order: that of [Context.Archive] for each context. Each sync still ends before the step that relies on it.
func (s *Store) Archive(ctx context.Context, ids []uuid.UUID, o ArchiveOptions) iter.Seq2[ArchiveResult, error] {
	return func(yield func(ArchiveResult, error) bool) {
		all := len(ids) == 0
		if all {
			for id, err := range s.IDs() {
				if err != nil {
					yield(ArchiveResult{}, Wrap(Error{Op: "archive", Path: s.path}, err))
					return
				}
				ids = append(ids, id)
			}
		}
		if report := o.Progress; report != nil {
			var mu sync.Mutex
			o.Progress = func(done, all int64) {
				mu.Lock()
				defer mu.Unlock()
				report(done, all)
			}
		}
		with := archive.NewCompressor(archive.Best, min(runtime.GOMAXPROCS(0), compressedAtOnce))
		for some := range slices.Chunk(ids, archivedLocked) {
			for i, x := range s.archiveSome(ctx, some, o, with) {
				if all && errors.Is(x.err, ErrNotExist) {
					x.err = nil // it has no such branch, or was removed meanwhile
				}
				x.Context = some[i]
				if !yield(x.ArchiveResult, x.err) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// archiveOutcome is what became of one context.
type archiveOutcome struct {
	ArchiveResult
	err error
}

// archiveSome archives contexts under one hold of [CollectionLock].
func (s *Store) archiveSome(ctx context.Context, ids []uuid.UUID, o ArchiveOptions, with *archive.Compressor) []archiveOutcome {
	out := make([]archiveOutcome, len(ids))
	failAll := func(err error) []archiveOutcome {
		for i, id := range ids {
			out[i].err = Wrap(Error{Op: "archive", Context: id, Branch: o.Branch}, err)
		}
		return out
	}
	switch {
	case o.DryRun:
	case s.ReadOnly:
		return failAll(ErrReadOnly)
	default:
		release, err := s.LockCollection(ctx)
		if err != nil {
			return failAll(err)
		}
		defer release()
	}
	fsys := vfs.ShareSyncs(s.FS)
	next := make(chan int)
	var group sync.WaitGroup
	for range min(archivedTogether, len(ids)) {
		group.Go(func() {
			for i := range next {
				out[i].ArchiveResult, out[i].err = s.archiveThrough(ctx, fsys, ids[i], o, with)
			}
		})
	}
	for i := range ids {
		next <- i // the end of ctx makes each context fail soon
	}
	close(next)
	group.Wait()
	return out
}

// archiveThrough archives a context that it opens through fsys, which is the folder of the store.
func (s *Store) archiveThrough(
	ctx context.Context, fsys vfs.FS, id uuid.UUID, o ArchiveOptions, with *archive.Compressor,
) (done ArchiveResult, err error) {
	c, err := s.openThrough(ctx, fsys, id)
	if err != nil {
		c, err = s.Context(ctx, id) // a legacy context, or the error
	}
	if err == nil {
		if o.DryRun {
			done, err = c.ArchiveOld(ctx, o, 0, true)
		} else {
			done, err = Use(c, func() (ArchiveResult, error) { return c.archive(ctx, o, with) })
			done.Context, err = id, Wrap(Error{Op: "archive", Context: id, Branch: o.Branch}, err)
		}
		err = errors.Join(err, c.Close())
	}
	return done, err
}
