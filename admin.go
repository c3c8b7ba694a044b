package ctxdir

import (
	"context"
	"iter"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Admin has what tools that look after a store need of a context: how it lies on disk. To read and write messages takes
// none of it.
type Admin struct{ e *engine.Context }

// Admin returns the operations on how the context lies on disk.
func (c *Context) Admin() Admin { return Admin{c.e} }

// Seal makes segments of all that the logs of the context have, now. The engine does so by itself when a log has grown
// enough.
func (a Admin) Seal(ctx context.Context) error { return a.e.Seal(ctx) }

// Unarchive makes the files of all archived messages of the context again. progress receives the number of messages done
// and in all; it may be nil.
func (a Admin) Unarchive(ctx context.Context, progress func(done, total int64)) (ArchiveResult, error) {
	r, err := archiving.Unarchive(ctx, a.e, progress)
	return archived(r), err
}

// Externalise applies a text threshold, in bytes, to the stored messages, including those of removed branches: a text of
// at least this length moves to a blob, 0 moves every string, and a negative number none. Messages that cannot be read, or
// that lack a required payload, stay as they are. If interrupted, it leaves each message in one form or the other, and a
// second call continues. With dryRun it only counts.
func (a Admin) Externalise(ctx context.Context, threshold int64, dryRun bool) (ArchiveResult, error) {
	r, err := archiving.Externalise(ctx, a.e, threshold, dryRun)
	return archived(r), err
}

// Files yields the paths, relative to the store's folder, of every file that the context needs: a copy of these files
// is a store with this context. It seals first, unless the store is open for reading.
func (a Admin) Files(ctx context.Context) iter.Seq2[string, error] { return a.e.Files(ctx) }

// BlobBytes returns the size of the blobs, in bytes on disk, that the context refers to; other contexts may share them.
// It opens no blob. It reads only messages that have payloads. References that were added to a file by hand do not
// count.
func (a Admin) BlobBytes(ctx context.Context) (int64, error) { return a.e.BlobBytes(ctx) }
