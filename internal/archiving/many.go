package archiving

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// archivedTogether is the number of contexts that a process archives at the same time, so that they share syncs.
	// Each takes some 10 MiB of memory.
	archivedTogether = 16
	// archivedLocked is the number of contexts under one hold of [engine.CollectionLock]. Then others get their turn.
	archivedLocked = 32
	// compressedAtOnce bounds the frames that are compressed at the same time, each of which takes about 12 MiB.
	compressedAtOnce = 4
)

// Archive removes the files of messages of contexts, without ids of all contexts of the store, and compresses the segments
// that have them. The messages are read as before. The file of a message that was edited by hand stays: a repair takes the
// edit in. So does a file that is the only whole copy. Without ids, a context that lacks the branch of the options has
// nothing to archive. Archive yields each context, in order. An error does not keep the others from being archived.
//
// Archiving one context takes some syncs, each of which waits for the disk. So Archive works on several contexts at a
// time, which share their syncs (see [vfs.ShareSyncs]). When the caller stops, some contexts that were not yielded may be
// archived, too.
//
// Crash order: that of archiveOne for each context. Each sync still ends before the step that relies on it.
func Archive(ctx context.Context, s *engine.Store, ids []uuid.UUID, o Options) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		all := len(ids) == 0
		if all {
			for id, err := range s.IDs() {
				if err != nil {
					yield(Result{}, engine.Wrap(engine.Error{Op: "archive", Path: s.Path()}, err))
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
			for i, x := range archiveSome(ctx, s, some, o, with) {
				if all && errors.Is(x.err, engine.ErrNotExist) {
					x.err = nil // it has no such branch, or was removed meanwhile
				}
				x.Context = some[i]
				if !yield(x.Result, x.err) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// archiveOutcome is what became of one context.
type archiveOutcome struct {
	Result
	err error
}

// archiveSome archives contexts under one hold of [engine.CollectionLock].
func archiveSome(ctx context.Context, s *engine.Store, ids []uuid.UUID, o Options, with *archive.Compressor) []archiveOutcome {
	out := make([]archiveOutcome, len(ids))
	failAll := func(err error) []archiveOutcome {
		for i, id := range ids {
			out[i].err = engine.Wrap(engine.Error{Op: "archive", Context: id, Branch: o.Branch}, err)
		}
		return out
	}
	switch {
	case o.DryRun:
	case s.ReadOnly:
		return failAll(engine.ErrReadOnly)
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
				out[i].Result, out[i].err = archiveThrough(ctx, s, fsys, ids[i], o, with)
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
func archiveThrough(
	ctx context.Context, s *engine.Store, fsys vfs.FS, id uuid.UUID, o Options, with *archive.Compressor,
) (done Result, err error) {
	c, err := s.OpenThrough(ctx, fsys, id)
	if err != nil {
		c, err = s.Context(ctx, id) // a legacy context, or the error
	}
	if err == nil {
		done, err = archiveUsed(ctx, c, o, with)
		err = errors.Join(err, c.Close())
	}
	return done, err
}
