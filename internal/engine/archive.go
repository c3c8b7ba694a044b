package engine

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// ArchiveOptions selects the messages to archive. The zero value selects all.
type ArchiveOptions struct {
	// OlderThan leaves out younger messages, and all that follow one on its line. A message without a time has that of its
	// commit.
	OlderThan time.Duration
	// StoredFor leaves out messages that were committed, or replaced, more recently, and all that follow one on its line. It
	// reads no message.
	StoredFor time.Duration
	// KeepLast leaves out the newest messages of each branch, this many.
	KeepLast int64
	// Branch leaves out messages that this branch does not show.
	Branch string
	// DryRun only counts the messages and their bytes.
	DryRun bool
	// limit bounds the length of the envelopes to archive in one call, in bytes; 0 for no bound.
	limit int64
	// Progress receives the number of messages examined so far; nil for no reports.
	Progress func(done, all int64)
}

// ArchiveResult is the result of archiving or unarchiving.
type ArchiveResult struct {
	Context  uuid.UUID
	Messages int64 // that had files, or have them now
	Stayed   int64 // of the selected files: edited by hand, damaged, or the only whole copy
	Before   int64 // bytes of the files of these messages, and of segments
	After    int64 // bytes of them now
}

// Archive removes the files of messages, and compresses the segments that have them. The messages are read as before. The
// file of a message that was edited by hand stays: a repair takes the edit in. So does a file that is the only whole copy.
// For many contexts [Store.Archive] takes less time.
//
// Crash order: the messages are in segments, durably, and the metadata says which of them have no files, before the first
// file goes. The removals are not synced: a file that comes back is a view, and the next Archive removes it.
func (c *Context) Archive(ctx context.Context, o ArchiveOptions) (ArchiveResult, error) {
	done, err := Use(c, func() (ArchiveResult, error) {
		if c.Store.ReadOnly {
			return ArchiveResult{}, ErrReadOnly
		}
		if o.DryRun {
			return c.archiveDryRun(ctx, o)
		}
		release, err := c.Store.LockCollection(ctx)
		if err != nil {
			return ArchiveResult{}, err
		}
		defer release()
		return c.archive(ctx, o, archive.NewCompressor(archive.Best, 1))
	})
	done.Context = c.Dir.ID
	return done, Wrap(Error{Op: "archive", Context: c.Dir.ID, Branch: o.Branch}, err)
}

// ArchiveOld archives what the settings of the store say, for a collection, which holds [CollectionLock]. It archives
// about limit bytes of messages at most, 0 for all. With dryRun it only counts.
func (c *Context) ArchiveOld(ctx context.Context, o ArchiveOptions, limit int64, dryRun bool) (ArchiveResult, error) {
	o.limit = limit
	done, err := Use(c, func() (ArchiveResult, error) {
		if dryRun {
			return c.archiveDryRun(ctx, o)
		}
		return c.archive(ctx, o, archive.NewCompressor(archive.Best, 1))
	})
	done.Context = c.Dir.ID
	return done, Wrap(Error{Op: "archive", Context: c.Dir.ID}, err)
}

func (c *Context) archiveDryRun(ctx context.Context, o ArchiveOptions) (done ArchiveResult, err error) {
	chosen, err := c.chooseMessages(ctx, o)
	for _, x := range chosen {
		done.Messages, done.Before = done.Messages+x.messages, done.Before+x.bytes
	}
	return done, err
}

// archive archives messages. The caller holds [CollectionLock], so no erase or restore runs meanwhile.
func (c *Context) archive(ctx context.Context, o ArchiveOptions, with *archive.Compressor) (done ArchiveResult, err error) {
	if err = c.refresh(ctx); err != nil {
		return done, err
	}
	chosen, err := c.chooseMessages(ctx, o)
	if err != nil || len(chosen) == 0 {
		return done, err
	}
	if done.Messages, err = c.noteArchived(ctx, chosen); err != nil {
		return done, err
	}
	if err := c.Store.Acquire(ctx, c.Dir.SealLock); err != nil {
		return done, err
	}
	defer c.Dir.SealLock.Release()
	var removed int64
	for line, x := range chosen {
		n, stayed, err := c.removeViews(ctx, loader.Span{Line: line, Folder: x.folder, From: x.base, To: x.to}, o.Progress)
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
func (c *Context) noteArchived(ctx context.Context, chosen map[uuid.UUID]*chosenLine) (n int64, err error) {
	for _, x := range chosen {
		n += x.messages
	}
	if n == 0 {
		return 0, nil
	}
	if err := c.sealAll(ctx); err != nil {
		return 0, err
	}
	n = 0
	err = c.Write(ctx, func(m *Metadata) error {
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
func (c *Context) removeViews(ctx context.Context, span loader.Span, progress func(done, all int64)) (removed, stayed int64, err error) {
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
			bytes, others, err := c.removeSome(span.Folder, page[:n])
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
func (c *Context) removeSome(folder string, entries []index.Entry) (removed, stayed int64, err error) {
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
		case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ctxfolder.ErrVersion):
			return removed, stayed, err
		default:
			stayed++
		}
	}
	return removed, stayed, nil
}

// Unarchive makes the files of all archived messages again. progress, unless nil, receives the number of messages examined
// so far.
//
// Crash order: the metadata says that the messages have files again before the first is made. After a crash in between, a
// repair makes the others.
func (c *Context) Unarchive(ctx context.Context, progress func(done, all int64)) (ArchiveResult, error) {
	done, err := Use(c, func() (done ArchiveResult, err error) {
		if c.Store.ReadOnly {
			return done, ErrReadOnly
		}
		changed := false
		err = c.Write(ctx, func(m *Metadata) error {
			m = m.Clone()
			for i := range m.Lines {
				l := &m.Lines[i]
				changed = changed || l.Archived > 0
				l.Archived, l.ArchivedBytes = 0, 0
			}
			if !changed {
				return nil
			}
			return c.ReplaceMetadata(m)
		})
		if err == nil && changed {
			done.Messages, done.After, err = c.makeViews(ctx, progress)
		}
		return done, err
	})
	done.Context = c.Dir.ID
	return done, Wrap(Error{Op: "unarchive", Context: c.Dir.ID}, err)
}

// makeViews makes the missing files of messages that are not archived. It returns how many it made, and their bytes.
func (c *Context) makeViews(ctx context.Context, progress func(done, all int64)) (made, bytes int64, err error) {
	var b *fileBatch
	var spans []loader.Span
	err = c.Write(ctx, func(m *Metadata) error {
		folders := map[uuid.UUID]string{}
		for i := range m.Lines {
			l := &m.Lines[i]
			counts, ok, err := c.Index.Counts(l.ID)
			if err != nil {
				return err
			}
			if from := max(counts.Base, l.Archived); ok && from < counts.End() {
				spans = append(spans, loader.Span{Line: l.ID, Folder: l.Folder, From: from, To: counts.End()})
				folders[l.ID] = l.Folder
			}
		}
		b = c.expectFiles(folders)
		return nil
	})
	if err != nil || b == nil {
		return 0, 0, errors.Join(err, c.fileFailure())
	}
	defer func() { b.end(err) }()
	for _, span := range spans {
		n, size, err := b.makeAll(ctx, span, progress)
		made, bytes = made+n, bytes+size
		if err != nil {
			return made, bytes, err
		}
	}
	return made, bytes, nil
}

// makeAll makes the missing files of a line.
func (b *fileBatch) makeAll(ctx context.Context, span loader.Span, progress func(done, all int64)) (made, bytes int64, err error) {
	for page, err := range b.c.Index.Pages(ctx, span.Line, span.From, span.To) {
		if err != nil {
			return made, bytes, err
		}
		files := b.c.Dir.Files(span.Folder)
		ids := make([]uuid.UUID, len(page))
		for i := range page {
			ids[i] = page[i].ID
		}
		infos, err := files.Stat(ids)
		files.Release()
		if err != nil {
			return made, bytes, err
		}
		for i := range page {
			e := &page[i]
			if infos[i] != nil || e.Gone != archive.Here {
				continue
			}
			f := messageFile{line: span.Line, id: e.ID, at: e.StoredAt(), entry: *e}
			if err := b.makeFile(&f); err != nil {
				return made, bytes, err
			}
			if f.body != nil {
				made, bytes = made+1, bytes+e.Size+1
			}
		}
		if progress != nil {
			progress(page[len(page)-1].Position+1-span.From, min(span.To, math.MaxInt64)-span.From)
		}
	}
	return made, bytes, nil
}
