// Package archiving removes the files of messages that segments have, makes them again, and moves payloads of stored
// messages to blobs: work on contexts that continues for a while, and costs no promise when it is interrupted.
package archiving

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Result is the result of archiving or unarchiving.
type Result struct {
	Context  uuid.UUID
	Messages int64 // that had files, or have them now
	Stayed   int64 // of the selected files: edited by hand, damaged, or the only whole copy
	Before   int64 // bytes of the files of these messages, and of segments
	After    int64 // bytes of them now
}

// Old archives what the settings of the store say, for a collection, which holds [engine.CollectionLock]. It archives about
// limit bytes of messages at most, 0 for all. With DryRun it only counts.
func Old(ctx context.Context, c *engine.Context, o Options, limit int64) (Result, error) {
	o.limit = limit
	return archiveUsed(ctx, c, o, archive.NewCompressor(archive.Best, 1))
}

// FromSettings returns which messages a collection archives, and whether it archives any.
func FromSettings(s engine.Settings) (o Options, some bool) {
	o.StoredFor = time.Duration(max(s.ArchiveAfter, 0)) * time.Second
	o.KeepLast = max(s.KeepLast, 0)
	return o, o.StoredFor > 0 || o.KeepLast > 0
}

func archiveUsed(ctx context.Context, c *engine.Context, o Options, with *archive.Compressor) (Result, error) {
	done, err := engine.Use(c, func() (Result, error) {
		if o.DryRun {
			return count(ctx, c, o)
		}
		return archiveOne(ctx, c, o, with)
	})
	done.Context = c.Dir.ID
	return done, engine.Wrap(engine.Error{Op: "archive", Context: c.Dir.ID, Branch: o.Branch}, err)
}

// count is a dry run.
func count(ctx context.Context, c *engine.Context, o Options) (done Result, err error) {
	chosen, err := choose(ctx, c, o)
	for _, x := range chosen {
		done.Messages, done.Before = done.Messages+x.messages, done.Before+x.bytes
	}
	return done, err
}

// archiveOne archives messages. The caller holds [engine.CollectionLock], so no erase or restore runs meanwhile.
//
// Crash order: the messages are in segments, durably, and the metadata says which of them have no files, before the first
// file goes. The removals are not synced: a file that comes back is a view, and the next call removes it.
func archiveOne(ctx context.Context, c *engine.Context, o Options, with *archive.Compressor) (done Result, err error) {
	if err = c.Refresh(ctx); err != nil {
		return done, err
	}
	chosen, err := choose(ctx, c, o)
	if err != nil || len(chosen) == 0 {
		return done, err
	}
	if done.Messages, err = noteArchived(ctx, c, chosen); err != nil {
		return done, err
	}
	if err := c.Store.Acquire(ctx, c.Dir.SealLock); err != nil {
		return done, err
	}
	defer c.Dir.SealLock.Release()
	var removed int64
	for line, x := range chosen {
		n, stayed, err := removeViews(ctx, c, loader.Span{Line: line, Folder: x.folder, From: x.base, To: x.to}, o.Progress)
		removed, done.Stayed = removed+n, done.Stayed+stayed
		if err != nil {
			return done, err
		}
	}
	if done.Messages == 0 {
		return done, nil // the files had come back, if there were any
	}
	was, _, err := c.Index.Sizes()
	if err != nil {
		return done, err
	}
	if err := c.Index.Compress(archive.Options{With: with}); err != nil {
		return done, err
	}
	size, _, err := c.Index.Sizes()
	done.Before, done.After = removed+was, size
	return done, err
}

// noteArchived seals the context and commits which messages of each line have no files. It returns how many did.
func noteArchived(ctx context.Context, c *engine.Context, chosen map[uuid.UUID]*chosenLine) (n int64, err error) {
	for _, x := range chosen {
		n += x.messages
	}
	if n == 0 {
		return 0, nil
	}
	if err := c.Seal(ctx); err != nil {
		return 0, err
	}
	n = 0
	err = c.Write(ctx, func(m *engine.Metadata) error {
		if err := c.AwaitFiles(ctx); err != nil {
			return err
		}
		m = m.Clone()
		for i := range m.Lines {
			l := &m.Lines[i]
			if x := chosen[l.ID]; x != nil && x.messages > 0 {
				l.Archived, l.ArchivedBytes = x.to, l.ArchivedBytes+x.bytes
				n += x.messages
			}
		}
		if n == 0 {
			return nil
		}
		return c.ReplaceMetadata(m)
	})
	return n, err
}

// removeViews removes the files of messages that hold what was committed, or an older version, where the committed bytes are
// whole. It returns the bytes of these files, and how many others stayed.
func removeViews(
	ctx context.Context, c *engine.Context, span loader.Span, progress func(done, all int64),
) (removed, stayed int64, err error) {
	there := map[uuid.UUID]bool{}
	err = c.Dir.MessageIDs(span.Folder, func(id uuid.UUID) error {
		there[id] = true
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || len(there) == 0 {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	for page, err := range c.Index.Pages(ctx, span.Line, span.From, span.To) {
		if err != nil {
			return removed, stayed, err
		}
		page = slices.DeleteFunc(page, func(e index.Entry) bool { return !there[e.ID] })
		for len(page) > 0 {
			n, size := 1, page[0].Size
			for n < len(page) && size+page[n].Size <= readAtOnce {
				size += page[n].Size
				n++
			}
			if progress != nil {
				progress(page[0].Position-span.From, span.To-span.From)
			}
			bytes, others, err := removeSome(c, span.Folder, page[:n])
			removed, stayed, page = removed+bytes, stayed+others, page[n:]
			if err != nil {
				return removed, stayed, err
			}
		}
	}
	return removed, stayed, c.Dir.RemoveFolder(span.Folder)
}

// readAtOnce bounds the envelopes that removeViews reads at once, in bytes, unless one is larger.
const readAtOnce = 4 << 20

// removeSome removes files of messages whose committed bytes are whole.
func removeSome(c *engine.Context, folder string, entries []index.Entry) (removed, stayed int64, err error) {
	committed, viewed := make([][]byte, len(entries)), make([][]byte, len(entries))
	c.Index.Read(entries, committed)
	files := c.Dir.Files(folder)
	defer files.Release()
	views.ReadAll(files, entries, viewed)
	for i := range entries {
		e := &entries[i]
		raw, is := viewed[i], views.Exact
		if raw == nil {
			raw, is, err = views.Read(c.Dir, folder, e)
		}
		switch {
		case is == views.Missing:
		case committed[i] != nil && (is == views.Exact || is == views.Stale):
			if err := files.Remove(e.ID); err != nil {
				return removed, stayed, err
			}
			removed += int64(len(raw)) + 1
		case err != nil && !errors.Is(err, index.ErrDamaged) && !errors.Is(err, ctxfolder.ErrVersion):
			return removed, stayed, err
		default:
			stayed++
		}
	}
	return removed, stayed, nil
}
