package ctxdir

import (
	"context"
	"iter"

	"github.com/ctxdir/ctxdir/internal/archiving"
)

// Admin are operations on the files of a context, for tools that look after a store. Programs that keep conversations
// need none of them.
type Admin struct{ c *Context }

// Admin returns the operations on the files of the context.
func (c *Context) Admin() Admin { return Admin{c} }

// Seal makes segments of all that logs have, now. The engine does so by itself when a log has grown enough.
func (a Admin) Seal(ctx context.Context) error { return wrap(a.c.e.Seal(ctx)) }

// Unarchive makes the files of all archived messages again. progress may be nil.
func (a Admin) Unarchive(ctx context.Context, progress func(done, total int64)) (ArchiveResult, error) {
	r, err := archiving.Unarchive(ctx, a.c.e, progress)
	return archived(r), wrap(err)
}

// Externalise applies a text threshold, like that of [Options], to the stored messages, including those of
// removed branches. Messages that cannot be read, or that lack a required payload, stay as they are. If interrupted, it
// leaves each message in one form or the other, and a second call continues. With dryRun it only counts.
func (a Admin) Externalise(ctx context.Context, threshold int64, dryRun bool) (ArchiveResult, error) {
	r, err := archiving.Externalise(ctx, a.c.e, threshold, dryRun)
	return archived(r), wrap(err)
}

// Files yields the paths, relative to the store's folder, of every file that the context needs: a copy of these files
// is a store with this context. It seals first, unless the store is open for reading.
func (a Admin) Files(ctx context.Context) iter.Seq2[string, error] {
	return each(a.c.e.Files(ctx), func(path string) string { return path })
}

// BlobBytes returns the size of the blobs, in bytes on disk, that the context refers to; other contexts may share them.
// It opens no blob. It reads only messages that have payloads. References that were added to a file by hand do not
// count.
func (a Admin) BlobBytes(ctx context.Context) (int64, error) {
	n, err := a.c.e.BlobBytes(ctx)
	return n, wrap(err)
}
