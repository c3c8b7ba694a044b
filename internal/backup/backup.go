// Package backup copies a context to another store, while writers append to it.
//
// [Copy] copies the files of the history, segments and logs, as they are at one moment: see [index.Index.CopyTo]. Then it
// reads every message of the copy, makes the files of messages, edits by hand included, and copies the payloads. It counts
// what cannot be read. [Prefix] writes a new history of some messages. Both make the copy in staging/, and publish it at
// the end.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Copy copies a context to another store, even while writers append: what is committed at one moment, with the payloads.
// An edit by hand is copied as it is now. If the other store has a copy that shows the same already, Copy leaves it.
// Unavailable messages and payloads are counted; such a message keeps its position. A legacy context is migrated first,
// or its view copied: see [engine.Store.Context]. An earlier backup goes to the other store's trash.
//
// It fails with [engine.ErrInvalid] when both are the same store or the other one lies in this one, and with
// [engine.ErrNotExist] when there is no such context.
//
// Crash order: the copy is durable in staging/, payloads first, before it gets its place: see context.Publish.
func Copy(ctx context.Context, s *engine.Store, id uuid.UUID, to *engine.Store) (Result, error) {
	done, err := copyContext(ctx, s, id, to)
	return done, engine.Wrap(engine.Error{Op: "back up", Context: id}, err)
}

func copyContext(ctx context.Context, s *engine.Store, id uuid.UUID, to *engine.Store) (Result, error) {
	if to.ReadOnly {
		return Result{}, engine.ErrReadOnly
	}
	inside, err := sameStore(s, to)
	if err == nil && !inside {
		inside, err = engine.IsWithin(to.Path(), s.Path())
	}
	if err != nil || inside {
		return Result{}, cmp.Or(err, fmt.Errorf("%w: the backup folder is the store or lies in it; choose another folder", engine.ErrInvalid))
	}
	c, err := s.Context(ctx, id)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	b := newCopier(c, to, id)
	b.done = Result{Context: id, Path: id.String()}
	if b.done.Current, err = b.isCurrent(ctx); b.done.Current || err != nil {
		return b.done, err
	}
	blobs := engine.BlobHold{Store: to}
	defer blobs.Release()
	if err := blobs.Hold(ctx); err != nil {
		return Result{}, err
	}
	err = b.staging(ctx, func() error {
		if err := b.copyAll(ctx); err != nil {
			return err
		}
		if err := to.SyncStaged(id, b.blobs); err != nil {
			return err
		}
		err := ctxfolder.Publish(to.FS, id)
		if err == nil {
			to.NoteChange(id)
		}
		return err
	})
	return b.done, err
}

// sameStore reports whether two stores are the same folder.
func sameStore(a, b *engine.Store) (bool, error) {
	x, err := a.FS.Lstat(engine.StoreFile)
	if err != nil {
		return false, err
	}
	y, err := b.FS.Lstat(engine.StoreFile)
	return err == nil && vfs.SameFile(x, y), err
}

// copyAll fills the folder of the copy.
func (b *copier) copyAll(ctx context.Context) error {
	metadata, err := b.copyHistory(ctx)
	if err != nil {
		return err
	}
	b.ix, b.kept = index.Open(index.FolderOf(b.to.ID(), b.id, b.staged), index.Options{}), true
	defer b.ix.Close()
	m, err := b.ix.Metadata()
	if err != nil {
		return err
	}
	if m == nil {
		m = b.c.Current() // its record is damaged
	}
	if metadata == nil {
		if metadata, err = m.Encode(); err != nil {
			return err
		}
	}
	if err := vfs.CreateFile(b.staged, ctxfolder.MetadataFile, metadata, index.Now()); err != nil {
		return err
	}
	for _, p := range slices.Concat(m.Prompts(), b.c.Current().Prompts()) {
		if err := b.payloads(p); err != nil {
			return err
		}
	}
	for i := range m.Lines {
		line := &m.Lines[i]
		counts, _, err := b.ix.Counts(line.ID)
		if err == nil {
			err = b.walk(ctx, line, line.Base, counts.End(), func(x *shown) error { return b.message(line, x) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tries bounds how often a history is copied that others merge meanwhile.
const tries = 8

// copyHistory copies the segments and logs of one moment. It returns metadata.json, nil if that cannot be read: what a
// person changed in it counts. It reads that first: a file that is behind the logs is a view of them, one that is ahead is
// not.
func (b *copier) copyHistory(ctx context.Context) (metadata []byte, err error) {
	for range tries {
		metadata, _ = vfs.ReadRegular(b.c.Dir.FS, ctxfolder.MetadataFile, ctxfolder.MaxMetadata)
		err = b.unsealed(ctx, func() error {
			if err := b.c.Dir.Check(); err != nil {
				return err
			}
			return b.c.Index.CopyTo(ctx, index.FolderOf(b.to.ID(), b.id, b.staged))
		})
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err := b.begin(); err != nil {
			return nil, err
		}
	}
	return metadata, err
}

// unsealed runs f while no process seals the source: its files stay. It takes no lock where nothing can be written.
func (b *copier) unsealed(ctx context.Context, f func() error) error {
	if !b.c.Store.ReadOnly {
		err := b.c.Store.Acquire(ctx, b.c.Dir.SealLock)
		if err == nil {
			defer b.c.Dir.SealLock.Release()
		} else if !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	return f()
}

// message makes the file of a message that has one, and copies the payloads.
func (b *copier) message(line *ctxfolder.Line, x *shown) error {
	content := x.content()
	switch {
	case x.IsErased():
		return nil
	case content == nil:
		b.countMissing(fmt.Errorf("message %s: %w", x.ID, x.why))
		return nil
	}
	b.done.Messages++
	b.done.Bytes += int64(len(content))
	if err := errors.Join(b.payloads(x.committed), b.payloads(x.edited)); err != nil {
		return err
	}
	if !x.hasFile && x.Position < line.Archived {
		return nil
	}
	at := x.editedAt
	if x.edited == nil {
		at = ctxfolder.FileTime(content, x.StoredAt())
	}
	if err := b.file(line.Folder, x.ID, content, at); !errors.Is(err, fs.ErrExist) { // an id that the line has twice
		return err
	}
	return nil
}

// file makes the file of a message. It fails with fs.ErrExist if another one has the id.
func (b *copier) file(name string, id uuid.UUID, content []byte, at time.Time) error {
	folder, ok := b.folders[name]
	if !ok {
		path := ctxfolder.Messages + "/" + name
		if err := b.staged.Mkdir(path); err != nil {
			return err
		}
		var err error
		if folder, err = b.staged.Sub(path); err != nil {
			return err
		}
		b.folders[name] = folder
	}
	return vfs.CreateFile(folder, ctxfolder.MessageFile(id), append(content, '\n'), at)
}
