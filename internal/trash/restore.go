package trash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// RestoreResult is the result of a restore.
type RestoreResult struct {
	Item     uuid.UUID
	Kind     string    // as in [engine.TrashItem]
	Context  uuid.UUID // uuid.Nil for blobs
	Path     string    // of the restored thing, relative to the store
	Branch   string    // of a line: its present name
	First    int64     // of a line: the position of the first message that came back
	Messages int64     // of a line: how many came back
	Bytes    int64
}

// Restore moves an item out of trash, back to where it was. A context gets its folder back; Restore fails with
// [engine.ErrExist] when the folder exists. A removed line gets a branch with its former name or a similar one. An old
// version of a message replaces the current one, which moves to the trash. Blobs return to their places.
//
// Restore fails with [engine.ErrNotExist] for an unknown item; with [engine.ErrPosition] for a version of a message that is
// gone, and with [engine.ErrConflict] when another message has its position; and with [engine.ErrInvalid] for an item that
// can only be inspected. An interrupted restore can be repeated until the item is gone. An item with further content stays
// in trash with it.
func Restore(ctx context.Context, s *engine.Store, item uuid.UUID) (RestoreResult, error) {
	r, err := restore(ctx, s, item)
	return r, engine.Wrap(engine.Error{Op: "restore", Path: item.String()}, err)
}

func restore(ctx context.Context, s *engine.Store, item uuid.UUID) (RestoreResult, error) {
	release, err := lockCollection(ctx, s)
	if err != nil {
		return RestoreResult{}, err
	}
	defer release()
	// Without this hold, a sweep that has already looked for references could move blobs of the restored item.
	blobs := engine.BlobHold{Store: s}
	defer blobs.Release()
	if err := blobs.Hold(ctx); err != nil {
		return RestoreResult{}, err
	}
	var r RestoreResult
	var failed, unlisted error
	for t, err := range EachItem(ctx, s, nil, func(id uuid.UUID, _ bool) bool { return id == item }) {
		if t == nil {
			return RestoreResult{}, err
		}
		if err != nil {
			unlisted = err
			continue
		}
		if r, failed = restoreItem(ctx, s, t); failed == nil || ctx.Err() != nil {
			return r, failed
		}
		// Another trash may have an item of the same id, for example that of a copied context.
	}
	return r, cmp.Or(failed, unlisted, fmt.Errorf("%w: item %s", engine.ErrNotExist, item))
}

func restoreItem(ctx context.Context, s *engine.Store, t *trashItem) (r RestoreResult, err error) {
	if t.Problem != nil {
		return r, fmt.Errorf("%w: %w", engine.ErrInvalid, t.Problem)
	}
	r = RestoreResult{Item: t.ID, Kind: t.Item.Kind, Context: t.in}
	if t.line != nil {
		err = withContext(ctx, s, t.in, func(c *engine.Context) error { return restoreInPlace(ctx, c, t, &r) })
		return r, err
	}
	switch {
	case t.Item.Kind == ctxfolder.TrashContext && t.in == uuid.Nil:
		err = restoreContext(ctx, s, t, &r)
	case t.Item.Kind == ctxfolder.TrashBlobs && t.in == uuid.Nil:
		err = restoreBlobs(ctx, s, t, &r)
	case t.Item.Kind == ctxfolder.TrashVersion && t.in != uuid.Nil:
		err = withContext(ctx, s, t.in, func(c *engine.Context) error { return restoreVersion(ctx, c, t, &r) })
	default:
		err = fmt.Errorf("%w: an item of kind %q cannot be restored; inspect it in %s", engine.ErrInvalid, t.Item.Kind, t.describe().Path)
	}
	if err != nil {
		return r, err
	}
	if more, err := t.HoldsMore(isObsolete); more || err != nil {
		return r, err
	}
	return r, t.Purge()
}

// restoreInPlace gives a removed line its former name again, or a similar one.
//
// Crash order: one commit. Nothing moves.
func restoreInPlace(ctx context.Context, c *engine.Context, t *trashItem, r *RestoreResult) error {
	err := c.Change(ctx, func(m *engine.Metadata) (err error) {
		r.Branch, err = branch.Name(m, t.ID, t.Item.Name)
		return err
	})
	r.Path, r.Bytes = c.Dir.ID.String()+"/"+t.Path, t.bytes
	r.First, r.Messages = t.line.First, t.line.End-t.line.First
	return err
}

// isObsolete reports whether a file in an item is useless after the restore.
func isObsolete(name string) bool {
	_, payload := blob.ParseFile(name)
	return payload || name == ctxfolder.TrashNote
}

func withContext(ctx context.Context, s *engine.Store, id uuid.UUID, f func(*engine.Context) error) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// touch gives a blob a new time before a new reference to it. A reader reports a missing blob.
func touch(s *engine.Store, sum blob.Sum) { _ = s.Blobs.Touch(sum) }

// restoreContext moves a context's folder back.
//
// Crash order: the rename is the only step. Until the syncs of both folders a crash may undo it, and the item then
// still has its context.
func restoreContext(ctx context.Context, s *engine.Store, t *trashItem, r *RestoreResult) error {
	id := t.Item.Context
	r.Context, r.Path = id, id.String()
	legacyFile := t.Item.Name == r.Path+".json"
	if legacyFile {
		r.Path = t.Item.Name
	}
	from := t.Path + "/" + r.Path
	if info, err := s.FS.Lstat(from); err != nil || !info.IsDir() && (!legacyFile || !info.Mode().IsRegular()) {
		return fmt.Errorf("%w: the item does not contain context %s", engine.ErrNotExist, id)
	}
	lock := s.FS.Lock(ctxfolder.Locks + "/" + id.String())
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	switch taken, err := vfs.Exists(s.FS, id.String()); {
	case err != nil:
		return err
	case taken:
		return fmt.Errorf("%w: context %s", engine.ErrExist, id)
	}
	if err := touchReferences(ctx, s, t, id); err != nil {
		return err
	}
	r.Bytes = t.Size()
	if err := s.FS.RenameNew(from, r.Path); err != nil {
		return err
	}
	if err := s.FS.SyncDir("."); err != nil {
		return err
	}
	return s.FS.SyncDir(t.Path)
}

// touchReferences gives a new time to the blobs to which a context in trash refers.
func touchReferences(ctx context.Context, s *engine.Store, t *trashItem, id uuid.UUID) error {
	sub, err := s.FS.Sub(t.Path)
	if err != nil {
		return err
	}
	defer sub.Close()
	in := s.In(sub)
	in.ReadOnly = true
	c, err := in.Open(ctx, id)
	if err != nil {
		return ctx.Err() // a damaged context returns as it is
	}
	_, _ = c.References(ctx, true, func(sum blob.Sum) { touch(s, sum) })
	return errors.Join(ctx.Err(), c.Close())
}

func restoreBlobs(ctx context.Context, s *engine.Store, t *trashItem, r *RestoreResult) error {
	r.Path = blob.Folder
	var sums []blob.Sum
	for e, err := range s.FS.ReadDir(t.Path) {
		if err != nil {
			return err
		}
		if sum, ok := blob.ParseFile(e.Name()); ok {
			sums = append(sums, sum)
		}
	}
	for _, sum := range sums {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := s.FS.Lstat(t.Path + "/" + sum.String() + ".zst")
		if err != nil {
			return err
		}
		moved, err := s.Blobs.Return(t.Path+"/"+sum.String()+".zst", sum)
		if err != nil {
			return err
		}
		if !moved {
			if moved, err = adoptBlob(s, t.Path+"/"+sum.String()+".zst", sum); err != nil {
				return err
			}
		}
		if moved {
			r.Bytes += info.Size()
		}
	}
	return nil
}

// adoptBlob replaces a damaged blob.
func adoptBlob(s *engine.Store, path string, sum blob.Sum) (moved bool, err error) {
	if whole, err := s.Blobs.Share(sum, false); whole || err != nil {
		return false, err
	}
	err = s.Blobs.Adopt(path, sum)
	if errors.Is(err, blob.ErrDamaged) {
		return false, nil // both are damaged
	}
	return err == nil, err
}

// restoreVersion makes an old version of a message the current one, by a replace.
func restoreVersion(ctx context.Context, c *engine.Context, t *trashItem, r *RestoreResult) error {
	raw, err := t.Envelope()
	if err != nil {
		return err
	}
	old, err := message.Parse(raw)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", engine.ErrDamaged, t.Path, err)
	}
	engine.EachMention(old.Body, func(sum blob.Sum) { touch(c.Store, sum) })
	err = c.Write(ctx, func(m *engine.Metadata) error {
		l, ok := m.Line(t.Item.Line)
		var e index.Entry
		if ok {
			e, ok, err = c.Index.Entry(l.ID, t.Item.Position)
		}
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: message %d of line %s no longer exists", engine.ErrPosition, t.Item.Position, t.Item.Line)
		case e.IsErased():
			return fmt.Errorf("%w: message %s", engine.ErrErased, old.ID)
		case e.ID != old.ID:
			return fmt.Errorf("%w: position %d now holds message %s", engine.ErrConflict, t.Item.Position, e.ID)
		}
		at := engine.Place{Span: loader.Span{Line: l.ID, Folder: l.Folder, From: e.Position, To: e.Position + 1}, Entry: e}
		r.Path, r.Bytes = c.Dir.ID.String()+"/"+c.Dir.MessagePath(l.Folder, e.ID), int64(len(raw))
		present, env, err := c.Loader.Envelope(at.Span, &at.Entry)
		if err != nil || present != nil && bytes.Equal(env.Body, old.Body) {
			return err
		}
		old.Line, old.Position, old.StoredAt = l.ID, e.Position, e.Next()
		old.Payloads = blob.Count(old.Body) // an edit by hand may have changed it, and a sweep relies on it
		if present == nil {
			if old.Prev, err = c.MakeRoom(m, at); err != nil {
				return err
			}
		}
		return c.Supersede(at, present, &old, nil)
	})
	c.Wrote()
	return err
}
