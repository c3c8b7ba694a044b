// Package backup copies a context to another store, while writers append to it.
//
// [Copy] takes a snapshot of the metadata and of the counts of each line under the context's lock. Then it copies
// messages, packs and payloads without the lock, and verifies each payload. It counts unavailable messages and
// payloads, and marks the messages as lost in the copy. The copy is made in staging/ of the other store, and published
// at the end.
//
// The package uses package engine for both stores, and package index for the rows of the copy.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Result is the result of a backup.
type Result struct {
	Context  uuid.UUID
	Path     string // of the copy, relative to its store
	Messages int64
	Bytes    int64 // of the messages
	Missing  int64 // unavailable messages and payloads
	Problem  error // why the first of those is unavailable, nil if there is none
	Current  bool  // nothing was copied: the other store has a copy of this state
}

// Copy copies a context to another store, even while writers append: the metadata and, of each line, the messages of
// one moment and their payloads. A message that is replaced meanwhile may be copied in its newer version; an edit by
// hand is copied as it is now. If the other store has a copy that shows the same already, Copy leaves it. Unavailable
// messages and payloads are left out and counted; such a message keeps its position, as lost. A legacy context is
// migrated first, or its view copied: see [engine.Store.Context]. An earlier backup goes to the other store's trash.
//
// It fails with [engine.ErrInvalid] when both are the same store or the other one lies in this one, and with
// [engine.ErrNotExist].
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
	b := &copier{c: c, to: to, seen: map[blob.Sum]bool{}, folders: map[string]vfs.FS{}}
	b.done.Context, b.done.Path, b.lockless = id, id.String(), s.ReadOnly
	if !b.lockless {
		// Mend a broken index first: writers cannot do that while the fold lock is held.
		err := c.Exclusively(ctx, func() error { return nil })
		if b.lockless = errors.Is(err, syscall.EROFS); err != nil && !b.lockless {
			return Result{}, err
		}
	}
	if !b.lockless {
		// The fold lock keeps the journals in place.
		if err := s.Acquire(ctx, c.Dir.FoldLock); err != nil {
			return Result{}, err
		}
		defer c.Dir.FoldLock.Release()
	}
	if err := b.snapshot(ctx); err != nil {
		return Result{}, err
	}
	if current, err := b.isCurrent(ctx); current || err != nil {
		b.done.Current = current
		return b.done, err
	}
	blobs := engine.BlobHold{Store: to}
	defer blobs.Release()
	if err := blobs.Hold(ctx); err != nil {
		return Result{}, err
	}
	err = b.locked(ctx, func() error {
		packs, err := b.begin(ctx, true)
		if err == nil {
			err = b.stage(packs, func(copied *index.Copy) error { return b.lines(ctx, copied) })
		}
		if err == nil {
			err = ctxfolder.Publish(to.FS, id)
		}
		if err == nil {
			to.NoteChange(id)
		}
		return err
	})
	return b.done, err
}

// locked runs f with the lock of the copy. If f fails, it removes what is staged.
func (b *copier) locked(ctx context.Context, f func() error) error {
	lock := b.to.FS.Lock(ctxfolder.Locks + "/" + b.m.ID.String())
	defer lock.Close()
	if err := b.to.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	err := f()
	if b.staged != nil {
		for _, f := range b.folders {
			_ = f.Close()
		}
		_ = b.staged.Close()
		if err != nil {
			_ = vfs.RemoveAll(b.to.FS, ctxfolder.StagingFolder(b.m.ID))
		}
	}
	return err
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

// copier is the state of one backup.
type copier struct {
	c       *engine.Context
	to      *engine.Store
	m       *engine.Metadata // as of the snapshot
	counts  map[uuid.UUID]index.Counts
	staged  vfs.FS
	folders map[string]vfs.FS // of the copy, by name
	seen    map[blob.Sum]bool
	done    Result

	lockless bool // no lock can be taken, since nothing can be written
}

// snapshot reads the metadata and counts of one moment. It holds the context's lock, which excludes writers.
func (b *copier) snapshot(ctx context.Context) error {
	c := b.c
	if !b.lockless {
		if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
			return err
		}
		defer c.Dir.Lock.Release()
	}
	if err := c.Dir.Check(); err != nil {
		return err
	}
	if err := c.Log.Refresh(); err != nil {
		return err
	}
	if err := c.ReadMetadata(); err != nil {
		return err
	}
	b.m = c.Current().Clone()
	var err error
	b.counts, _, err = c.Log.AllCounts()
	return err
}

// begin makes the folder of the copy in staging/, with the packs if they are wanted.
func (b *copier) begin(ctx context.Context, withPacks bool) (packs []uuid.UUID, err error) {
	staged := ctxfolder.StagingFolder(b.m.ID)
	if err := vfs.RemoveAll(b.to.FS, staged); err != nil {
		return nil, err
	}
	for _, dir := range []string{staged, staged + "/" + ctxfolder.Messages} {
		if err := b.to.FS.Mkdir(dir); err != nil {
			return nil, err
		}
	}
	if b.staged, err = b.to.FS.Sub(staged); err == nil && withPacks {
		packs, err = b.packs(ctx)
	}
	return packs, err
}

// stage fills the folder of the copy, and makes it durable.
func (b *copier) stage(packs []uuid.UUID, lines func(copied *index.Copy) error) error {
	copied := index.NewCopy(b.staged, b.to.ID(), b.m.ID, packs)
	err := lines(copied)
	if ferr := copied.Finish(b.m, err); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	encoded, err := b.m.Encode()
	if err != nil {
		return err
	}
	if err := vfs.WriteSynced(b.staged, ctxfolder.MetadataFile, encoded); err != nil {
		return err
	}
	if err := b.to.FS.SyncAll(); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for sum := range b.seen {
		if _, err := b.to.Blobs.Share(sum, true); err != nil {
			return err
		}
	}
	return engine.SyncTree(b.to.FS, ctxfolder.StagingFolder(b.m.ID))
}

func (b *copier) lines(ctx context.Context, copied *index.Copy) error {
	for _, x := range b.m.Branches {
		if err := b.payloads(x.SystemPrompt, &index.Entry{}); err != nil {
			return err
		}
	}
	for i := range b.m.Lines {
		line := &b.m.Lines[i]
		counts := b.counts[line.ID]
		if counts.Count == 0 {
			continue
		}
		if err := copied.Line(line); err != nil {
			return err
		}
		for e, err := range b.c.Log.All(ctx, line.ID, line.Base, counts.End()) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = b.message(line, e)
			}
			if err == nil {
				err = copied.Put(*e)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// message copies a message's payloads, then its file. The entry becomes the copy's.
func (b *copier) message(line *ctxfolder.Line, e *index.Entry) error {
	raw, packed, err := b.read(line, e)
	var env message.Envelope
	if err == nil {
		env, err = message.Parse(raw)
	}
	if err != nil {
		b.markLost(e, err)
		return nil
	}
	if err := b.payloads(env.Body, e); err != nil {
		return err
	}
	if packed {
		b.done.Messages++
		b.done.Bytes += e.Size
		return nil
	}
	e.Pack = uuid.Nil
	folder, err := b.folder(line.Folder)
	if err != nil {
		return err
	}
	e.Payloads = blob.Count(env.Body)
	e.Lost, e.Size, e.Sum, e.At = "", int64(len(raw)), message.Sum(raw), env.StoredAt.UnixNano()
	err = vfs.CreateFile(folder, ctxfolder.MessageFile(e.FileID()), append(raw, '\n'), ctxfolder.FileTime(raw, e.StoredAt()))
	if errors.Is(err, fs.ErrExist) { // two rows name one file
		b.markLost(e, err)
		return nil
	}
	b.done.Messages++
	b.done.Bytes += e.Size
	return err
}

// markLost leaves a message out: it becomes lost in the copy, or stays erased.
func (b *copier) markLost(e *index.Entry, why error) {
	e.Lost, e.Pack = cmp.Or(e.Lost, "no copy was found"), uuid.Nil
	if e.Lost != index.Erased {
		b.countMissing(fmt.Errorf("message %s: %w", e.ID, why))
	}
}

// read returns a message as of the snapshot, or as edited by hand since. If neither is readable, it returns a newer
// version. packed says that the message is in a pack, which was copied.
func (b *copier) read(line *ctxfolder.Line, e *index.Entry) (raw []byte, packed bool, err error) {
	raw, is, err := b.c.Log.ReadFile(line.ID, e, line.Folder)
	newer := false
	if is == index.FileEdited {
		env, err := message.Parse(raw)
		newer = err == nil && env.StoredAt.UnixNano() > e.At
	}
	if (is.Whole() || is == index.FileEdited) && !newer {
		return raw, false, nil
	}
	if record, ok := b.c.Log.ReadRecord(e); ok {
		return record, e.Pack != uuid.Nil, nil
	}
	if newer {
		return raw, false, nil
	}
	return nil, false, err
}

func (b *copier) countMissing(err error) {
	b.done.Missing++
	b.done.Problem = cmp.Or(b.done.Problem, err)
}

func (b *copier) folder(name string) (vfs.FS, error) {
	if f, ok := b.folders[name]; ok {
		return f, nil
	}
	path := ctxfolder.Messages + "/" + name
	if err := b.staged.Mkdir(path); err != nil {
		return nil, err
	}
	f, err := b.staged.Sub(path)
	if err == nil {
		b.folders[name] = f
	}
	return f, err
}
