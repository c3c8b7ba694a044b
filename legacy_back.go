package ctxdir

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
)

// RolledBack tells of a context that was given back as a legacy one.
type RolledBack struct {
	Context  uuid.UUID
	Path     string // of the file or folder
	Messages int64
	Missing  int64   // messages that could not be had and are not in it
	Trashed  Trashed // the context, where its place was taken
}

// RollbackOptions changes how a context is given back.
type RollbackOptions struct {
	// Force leaves messages out that cannot be had, and takes no offence at what was changed since the migration.
	Force bool
	// Progress is told how many messages were written; nil for nobody.
	Progress func(done, all int64)
}

// Rollback writes the context as a legacy one, with payloads in their places and archived messages: one that was migrated in its old form, equal to
// what it was but for what was changed since; another one in a form that the old program can read, as docs/FORMAT.md says. A context that was a
// folder becomes one again, unless path ends in .json. The context itself stays.
//
// It fails with an error that wraps fs.ErrExist when there is something at path, and with the reason when a message cannot be had.
func (c *Context) Rollback(ctx context.Context, path string, o RollbackOptions) (RolledBack, error) {
	done, err := using(c, func() (RolledBack, error) { return c.rollback(ctx, path, o) })
	return done, public(Error{Op: "roll back", Context: c.dir.ID, Path: path}, err)
}

func (c *Context) rollback(ctx context.Context, path string, o RollbackOptions) (RolledBack, error) {
	r := &rollingBack{c: c, lenient: o.Force, progress: o.Progress}
	abs, err := filepath.Abs(path)
	if err == nil {
		err = c.refresh(ctx)
	}
	if err != nil {
		return r.done, err
	}
	fsys, err := vfs.OS(filepath.Dir(abs))
	if err != nil {
		return r.done, err
	}
	defer fsys.Close()
	name := filepath.Base(abs)
	if _, err := fsys.Lstat(name); err == nil {
		return r.done, fmt.Errorf("%w: %s", fs.ErrExist, path)
	}
	write := legacy.Write
	if from := parseLegacy(c.current()); from != nil && from.format == legacy.Split && !strings.HasSuffix(name, ".json") {
		write = legacy.WriteFolder
	}
	err = write(fsys, name, func(to legacy.Sink) error { return r.run(ctx, to) })
	r.done.Path = path
	return r.done, err
}

// RestoreLegacy puts the file or folder that a context was migrated from back into its place, and moves the context to the store's trash. It is
// found where it was, with the suffix .old, and known by its SHA-256. Without Force, a context that is not what was migrated any more, because
// messages came since for instance, stays: the error is a [*ValidationError]. It fails with [ErrNotLegacy] when the context was not migrated, and
// with an error that wraps fs.ErrNotExist when the file is not there, or fs.ErrExist when its place is taken.
//
// Crash order: the file is back, durably, before the context goes. Done again, the rest is done. A folder that lay where the context is can only come
// back when that has gone: a crash in between leaves the context in the store's trash, from where [Store.Restore] brings it, for this to be done again.
func (s *Store) RestoreLegacy(ctx context.Context, id uuid.UUID, o RollbackOptions) (RolledBack, error) {
	done, err := s.restoreLegacy(ctx, id, o)
	return done, public(Error{Op: "roll back", Context: id}, err)
}

func (s *Store) restoreLegacy(ctx context.Context, id uuid.UUID, o RollbackOptions) (done RolledBack, err error) {
	if s.readOnly {
		return done, ErrReadOnly
	}
	c, err := s.open(ctx, id)
	if err != nil {
		return done, err
	}
	defer c.Close()
	done.Context = id
	// Nobody may append between the comparison and the end.
	if err := s.acquire(ctx, c.dir.Lock); err != nil {
		return done, err
	}
	defer c.dir.Lock.Release()
	if err := c.dir.Check(); err != nil {
		return done, err
	}
	from := parseLegacy(c.current())
	if from == nil {
		return done, fmt.Errorf("%w: the context was not migrated", ErrNotLegacy)
	}
	fsys, err := s.placeOf(from, &done)
	if err != nil {
		return done, err
	}
	defer fsys.Close()
	name := filepath.Base(done.Path)
	old, f, err := findBackup(fsys, done.Path, from.sum, s.opts.maxMessage)
	if err != nil {
		return done, err
	}
	defer f.Close()
	done.Messages = int64(f.Len())
	if !o.Force {
		if err := c.same(ctx, f, true, o.Progress); err != nil {
			return done, fmt.Errorf("the context was changed since it was migrated: %w", err)
		}
	}
	place, err := fsys.Lstat(name)
	self, serr := s.fs.Lstat(id.String())
	inPlace := err == nil && serr == nil && vfs.SameFile(place, self)
	if inPlace { // a folder that lies where the context is
		if done.Trashed, err = s.deleteLocked(ctx, c.dir); err != nil {
			return done, err
		}
	}
	if old != name {
		if err := fsys.RenameNew(old, name); errors.Is(err, fs.ErrExist) {
			return done, fmt.Errorf("something else is at %s: %w", done.Path, fs.ErrExist)
		} else if err != nil {
			return done, err
		}
		if err := fsys.SyncDir("."); err != nil {
			return done, err
		}
	}
	if !inPlace {
		done.Trashed, err = s.deleteLocked(ctx, c.dir)
	}
	return done, err
}

// placeOf opens the folder that a legacy context was in, and notes where that is.
func (s *Store) placeOf(from *legacyContext, done *RolledBack) (vfs.FS, error) {
	if filepath.IsAbs(from.path) {
		done.Path = from.path
		return vfs.OS(filepath.Dir(from.path))
	}
	if !filepath.IsLocal(filepath.FromSlash(from.path)) {
		return nil, fmt.Errorf("%w: the context does not say where it was migrated from", ErrNotLegacy)
	}
	done.Path = filepath.Join(s.path, filepath.FromSlash(from.path))
	return s.fs.Sub(path.Dir(from.path))
}

// same fails with a [*ValidationError] where the context does not give back what it was migrated from. A lenient one takes a message that
// cannot be had for one that is not there.
func (c *Context) same(ctx context.Context, f *legacy.File, lenient bool, progress func(done, all int64)) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	failed := &ValidationError{}
	to := f.Compare(failed.add)
	if err := (&rollingBack{c: c, lenient: lenient, progress: progress}).run(ctx, to); err != nil {
		return err
	}
	if err := to.Finish(); err != nil {
		return err
	}
	if failed.Count > 0 {
		return failed
	}
	return nil
}

// findBackup looks for what was migrated: where it was, or under that name with the suffix.
func findBackup(fsys vfs.FS, at, sum string, limit int64) (string, *legacy.File, error) {
	name, found := filepath.Base(at), ""
	for n := 0; ; n++ {
		old := name
		if n > 0 {
			old = legacy.BackupName(name, n)
		}
		f, err := openBackup(fsys, old, sum, limit)
		switch {
		case err == nil:
			return old, f, nil
		case n == 0:
		case errors.Is(err, fs.ErrNotExist) && found == "":
			return "", nil, fmt.Errorf("%s is not there any more: %w", legacy.BackupName(at, 1), fs.ErrNotExist)
		case errors.Is(err, fs.ErrNotExist):
			return "", nil, fmt.Errorf("%s is not what was migrated any more: %w", filepath.Join(filepath.Dir(at), found), legacy.ErrChanged)
		case errors.Is(err, legacy.ErrChanged), errors.Is(err, legacy.ErrDamaged), errors.Is(err, legacy.ErrNotLegacy):
			found = cmp.Or(found, old)
		default:
			return "", nil, err
		}
	}
}

func openBackup(fsys vfs.FS, name, sum string, limit int64) (*legacy.File, error) {
	f, err := legacy.Open(fsys, name, legacy.Options{Limit: limit})
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(f.Digest[:]) != sum {
		_ = f.Close()
		return nil, legacy.ErrChanged
	}
	return f, nil
}
