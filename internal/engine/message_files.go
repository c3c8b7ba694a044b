package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

const (
	// writers bounds the message files that are made concurrently while somebody waits for them.
	writers = 8
	// background is the number of writers while no caller waits. More would compete with appends for the processor.
	background = 1
)

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
		if env := items[i].Envelope; items[i].Kind == journal.Add && env != nil {
			b.add(messageFile{line: env.Line, id: env.ID, at: env.StoredAt, body: items[i].Body})
		}
	}
}

func (b *fileBatch) add(f messageFile) {
	if b != nil && b.folders[f.line] != "" {
		b.files, b.bytes = append(b.files, f), b.bytes+len(f.body)
	}
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

// make makes the files of a batch. The batch is used up then.
func (b *fileBatch) make(workers int) {
	if b.c.Store.Options.inOrder {
		workers = background
	}
	var next atomic.Int64
	var made errgroup.Group
	work := func() (err error) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(b.files) {
				return err
			}
			if ferr := b.makeFile(&b.files[i]); err == nil {
				err = ferr
			}
			if workers == background {
				vfs.Yield()
			}
		}
	}
	for range min(workers, len(b.files)) - 1 {
		made.Go(work)
	}
	err := work()
	if werr := made.Wait(); err == nil {
		err = werr
	}
	b.end(err)
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

// expectMissing opens a batch for files that may exist already. Archived messages have none, nor has a folder without views.
func (c *Context) expectMissing(lines map[uuid.UUID][]index.Entry, m *Metadata) *fileBatch {
	if !vfs.HasViews(c.Dir.FS) {
		return nil
	}
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

// fileFailure returns why a file could not be made since the last call.
func (c *Context) fileFailure() error {
	f := &c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.failure
	f.failure = nil
	return err
}

func (c *Context) keepFailure(err error) {
	c.messageFiles.mu.Lock()
	defer c.messageFiles.mu.Unlock()
	c.messageFiles.failure = err
}
