package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// messageFiles is what a handle knows about the message files that follow its commits. While one is pending, the handle
// holds the context's lock on files in shared mode: a process that removes message files waits for that lock, so no
// file appears behind it.
type messageFiles struct {
	mu      sync.Mutex
	due     int   // batches with pending files
	failure error // why a file could not be made since the last flush; the log has its message
	checked bool  // the handle has made the files that a killed process left pending
}

// fileBatch is a set of pending message files. A nil batch makes none.
type fileBatch struct {
	c       *Context
	folders map[uuid.UUID]string // of the lines
	files   []messageFile
	bytes   int

	mu      sync.Mutex
	touched []index.Entry // whose files are there, and not as they were made
}

// messageFile is a pending message file.
type messageFile struct {
	line  uuid.UUID
	id    uuid.UUID
	at    time.Time   // of the commit
	body  []byte      // the envelope; nil if it is to be read, and the file may exist
	entry index.Entry // if it is to be read
}

// expectFiles opens a batch for files of lines, with the names of their folders, before their records are durable. The
// caller holds the context's lock. If no file can be made now, the next flush makes the files.
func (c *Context) expectFiles(folders map[uuid.UUID]string) *fileBatch {
	f := &c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due == 0 {
		if err := c.Store.AcquireWith(context.Background(), c.Dir.FilesLock.AcquireShared); err != nil {
			f.failure = cmp.Or(f.failure, err)
			return nil
		}
	}
	f.due++
	return &fileBatch{c: c, folders: folders}
}

// take adds the files of what a commit wrote of items.
func (b *fileBatch) take(items []Item, written int) {
	if b == nil {
		return
	}
	for i := range written {
		if env := items[i].Envelope; items[i].Kind == journal.Add {
			b.add(messageFile{line: env.Line, id: env.ID, at: env.StoredAt, body: items[i].Body})
		}
	}
}

func (b *fileBatch) add(f messageFile) {
	if b != nil && b.folders[f.line] != "" {
		b.files, b.bytes = append(b.files, f), b.bytes+len(f.body)
	}
}

// queue leaves the files of a batch to the projector. Their records are durable.
func (b *fileBatch) queue() {
	if b == nil {
		return
	}
	if len(b.files) == 0 {
		b.end(nil)
		return
	}
	b.c.Store.projector.add(b, b.c.Store.Options.files == FilesOnReturn)
}

// end releases a batch. A failure is kept for the next flush.
func (b *fileBatch) end(failure error) {
	if b == nil {
		return
	}
	f := &b.c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = cmp.Or(f.failure, failure)
	if f.due--; f.due == 0 {
		_ = b.c.Dir.FilesLock.Release()
	}
}

func (b *fileBatch) makeFile(f *messageFile) error {
	folder := b.folders[f.line]
	if f.body == nil {
		info, err := b.c.Dir.StatMessage(folder, f.id)
		if err == nil && !ctxfolder.Untouched(info, f.entry.Size, f.entry.StoredAt()) {
			b.mu.Lock()
			b.touched = append(b.touched, f.entry)
			b.mu.Unlock()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		raw, err := b.c.Index.ReadOne(&f.entry)
		if err != nil {
			return nil //nolint:nilerr // reading the message reports this
		}
		f.body = raw
	}
	if err := b.c.Dir.CreateMessage(folder, f.id, f.body, f.at); err != nil { // a file that is there may be of a newer version
		return fmt.Errorf("making the file of message %s: %w", f.id, err)
	}
	return nil
}

// pending returns the messages that are not sealed, until a commit of this handle has made their files: a process may
// have been killed between a commit and its files. The caller holds the context's lock.
func (c *Context) pending() (map[uuid.UUID][]index.Entry, error) {
	c.messageFiles.mu.Lock()
	defer c.messageFiles.mu.Unlock()
	if c.messageFiles.checked {
		return nil, nil
	}
	return c.Index.Unsealed()
}

// queuePending leaves the files of what pending returned to the projector. A commit that follows those messages is
// durable: so are they, even if the process that wrote them saw its sync fail.
func (c *Context) queuePending(b *fileBatch) {
	c.messageFiles.mu.Lock()
	c.messageFiles.checked = true
	c.messageFiles.mu.Unlock()
	b.queue()
}

// makeMissing makes the missing files of messages that are not sealed, with so many workers, and replaces those of older
// versions. It returns the place up to which it did. A failure is kept for the next flush.
func (c *Context) makeMissing(ctx context.Context, workers int) (made journal.Position, err error) {
	var b *fileBatch
	var commit *index.Commit
	err = c.Write(ctx, func(m *Metadata) error {
		entries, err := c.Index.Unsealed()
		if err == nil {
			b, commit = c.expectMissing(entries, m), c.Index.Barrier()
			made = commit.At
		}
		return err
	})
	if err == nil {
		err = commit.Wait()
	}
	if err == nil {
		b.queue()
	} else {
		b.end(nil)
	}
	err = errors.Join(err, c.awaitFiles(workers))
	if err == nil && b != nil && len(b.touched) > 0 {
		err = c.replaceStale(ctx, b.touched)
	}
	if err != nil {
		c.keepFailure(err)
	}
	return made, err
}

// replaceStale replaces those files that have an older version of a message: a writer was stopped before it did.
func (c *Context) replaceStale(ctx context.Context, touched []index.Entry) error {
	return c.Write(ctx, func(m *Metadata) error {
		for i := range touched {
			e := &touched[i]
			line, ok := m.Line(e.Line)
			if !ok {
				continue
			}
			now, ok, err := c.Index.Entry(e.Line, e.Position)
			if err != nil {
				return err
			}
			if _, is, _ := views.Read(c.Dir, line.Folder, e); !ok || now.Seq != e.Seq || is != views.Stale {
				continue
			}
			raw, err := c.Index.ReadOne(e)
			if err == nil {
				err = c.Dir.ReplaceMessage(line.Folder, e.ID, raw, e.StoredAt())
			}
			if err != nil {
				return fmt.Errorf("replacing the file of message %s: %w", e.ID, err)
			}
		}
		return nil
	})
}

// expectMissing opens a batch for files that may exist already. Archived messages have none.
func (c *Context) expectMissing(lines map[uuid.UUID][]index.Entry, m *Metadata) *fileBatch {
	folders := m.Folders()
	maps.DeleteFunc(folders, func(line uuid.UUID, _ string) bool { return len(lines[line]) == 0 })
	if len(folders) == 0 {
		return nil
	}
	b := c.expectFiles(folders)
	for line, entries := range lines {
		archived := int64(0)
		if l, ok := m.Line(line); ok {
			archived = l.Archived
		}
		for _, e := range entries {
			if e.Gone == archive.Here && e.Position >= archived {
				b.add(messageFile{line: line, id: e.ID, at: e.StoredAt(), entry: e})
			}
		}
	}
	return b
}

// Flush waits until every message of the context has its file. Files follow their commits a moment later; other
// programs see all of them after Flush. It also writes files that a killed process had not written, or that could not
// be made before. An error means that a file is missing, on a full disk for example; the history has the message, and
// Flush can be repeated.
func (c *Context) Flush(ctx context.Context) error {
	return Wrap(Error{Op: "flush", Context: c.Dir.ID}, c.use(func() error { return c.flush(ctx) }))
}

func (c *Context) flush(ctx context.Context) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	_ = c.awaitFiles(writers) // what could not be made is made now, unless somebody did and sealed its message
	_, err := c.makeMissing(ctx, writers)
	return errors.Join(err, c.flushProjection(ctx))
}

// awaitFiles makes the files that wait, with so many workers, and returns why one could not be made since the last
// call.
func (c *Context) awaitFiles(workers int) error {
	c.Store.projector.run(workers)
	return c.fileFailure()
}

// fileFailure returns why a file could not be made since the last call.
func (c *Context) fileFailure() error {
	f := &c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.failure
	f.failure = nil
	return err
}

// AwaitFiles waits for the files of earlier commits of every process, see [ctxfolder.Dir.AwaitFiles]. The caller holds
// the context's lock.
func (c *Context) AwaitFiles(ctx context.Context) error { return c.Store.awaitFiles(ctx, c.Dir) }

func (s *Store) awaitFiles(ctx context.Context, dir *ctxfolder.Dir) error {
	s.projector.run(writers)
	return s.AcquireWith(ctx, dir.AwaitFiles)
}

func (c *Context) keepFailure(err error) {
	c.messageFiles.mu.Lock()
	defer c.messageFiles.mu.Unlock()
	c.messageFiles.failure = err
}
