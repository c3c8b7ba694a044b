package migrate

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

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// RollbackResult is the result of a rollback to the legacy format.
type RollbackResult struct {
	Context  uuid.UUID
	Path     string // of the file or folder
	Messages int64
	Missing  int64            // unavailable messages, which are not in it
	Trashed  engine.TrashItem // the context, if the rollback removed it
}

// RollbackOptions configures a rollback.
type RollbackOptions struct {
	// Force leaves out unavailable messages, and accepts changes since the migration.
	Force bool
	// Progress receives the number of messages written so far; nil for no reports.
	Progress func(done, all int64)
}

// Rollback writes the context in the legacy format, with payloads in their places and archived messages. A migrated
// context gets its old form, equal to the original but for later changes. Any other context gets a form that the old
// program can read: see docs/LEGACY.md. A folder becomes one again, unless path ends in .json. The context stays.
//
// It fails with an error that wraps fs.ErrExist when path exists, and with the reason when a message is unavailable.
func Rollback(ctx context.Context, c *engine.Context, path string, o RollbackOptions) (RollbackResult, error) {
	done, err := engine.Use(c, func() (RollbackResult, error) { return rollback(ctx, c, path, o) })
	return done, wrap(engine.Error{Op: "roll back", Context: c.Dir.ID, Path: path}, err)
}

func rollback(ctx context.Context, c *engine.Context, path string, o RollbackOptions) (RollbackResult, error) {
	r := &legacyWriter{c: c, lenient: o.Force, progress: o.Progress}
	abs, err := filepath.Abs(path)
	if err == nil {
		err = c.Refresh(ctx)
	}
	if err != nil {
		return RollbackResult{}, err
	}
	fsys, err := vfs.OS(filepath.Dir(abs))
	if err != nil {
		return RollbackResult{}, err
	}
	defer fsys.Close()
	name := filepath.Base(abs)
	switch there, err := vfs.Exists(fsys, name); {
	case err != nil:
		return RollbackResult{}, err
	case there:
		return RollbackResult{}, fmt.Errorf("%w: %s", fs.ErrExist, path)
	}
	write := legacy.Write
	if from := ParseOrigin(c.Current()); from != nil && from.format == legacy.Split && !strings.HasSuffix(name, ".json") {
		write = legacy.WriteFolder
	}
	err = write(fsys, name, func(to legacy.Sink) error { return r.run(ctx, to) })
	return RollbackResult{Context: c.Dir.ID, Path: path, Messages: r.messages, Missing: r.missing}, err
}

// RestoreLegacy moves the file or folder that a context was migrated from back to its place, and the context to the
// store's trash. It finds the original there, or next to it with the suffix .old, and recognises it by its SHA-256.
// Without Force, it refuses a context that differs, for instance by newer messages, with [engine.ErrConflict]. It fails
// with [engine.ErrNotLegacy] when the context was not migrated, and with an error that wraps fs.ErrNotExist if the
// original is missing, or fs.ErrExist if its place is taken.
//
// Crash order: the original is back, durably, before the context moves to the trash. A second call does the rest. A
// context in the place of the original folder moves first. After a crash in between, it is in the trash: restore it for
// a second call.
func RestoreLegacy(ctx context.Context, s *engine.Store, id uuid.UUID, o RollbackOptions) (RollbackResult, error) {
	done, err := restoreLegacy(ctx, s, id, o)
	return done, wrap(engine.Error{Op: "roll back", Context: id}, err)
}

func restoreLegacy(ctx context.Context, s *engine.Store, id uuid.UUID, o RollbackOptions) (done RollbackResult, err error) {
	if s.ReadOnly {
		return done, engine.ErrReadOnly
	}
	c, err := s.Open(ctx, id)
	if err != nil {
		return done, err
	}
	defer c.Close()
	done.Context = id
	// No writer may append between the comparison and the end.
	if err := s.Acquire(ctx, c.Dir.Lock); err != nil {
		return done, err
	}
	defer c.Dir.Lock.Release()
	if err := c.Dir.Check(); err != nil {
		return done, err
	}
	from := ParseOrigin(c.Current())
	if from == nil {
		return done, fmt.Errorf("%w: the context was not migrated", engine.ErrNotLegacy)
	}
	fsys, err := openPlace(s, from, &done)
	if err != nil {
		return done, err
	}
	defer fsys.Close()
	name := filepath.Base(done.Path)
	old, f, err := findBackup(fsys, done.Path, from.sum, s.Options.MaxMessage)
	if err != nil {
		return done, err
	}
	defer f.Close()
	done.Messages = int64(f.Len())
	if !o.Force {
		if err := verifyUnchanged(ctx, c, f, true, o.Progress); err != nil {
			return done, fmt.Errorf("the context has changed since its migration: %w", err)
		}
	}
	place, err := fsys.Lstat(name)
	self, serr := s.FS.Lstat(id.String())
	inPlace := err == nil && serr == nil && vfs.SameFile(place, self)
	if inPlace { // the original was a folder in this place
		if done.Trashed, err = s.DeleteLocked(ctx, c.Dir); err != nil {
			return done, err
		}
	}
	if old != name {
		if err := fsys.RenameNew(old, name); errors.Is(err, fs.ErrExist) {
			return done, fmt.Errorf("cannot create %s: %w", done.Path, fs.ErrExist)
		} else if err != nil {
			return done, err
		}
		if err := fsys.SyncDir("."); err != nil {
			return done, err
		}
	}
	if !inPlace {
		done.Trashed, err = s.DeleteLocked(ctx, c.Dir)
	}
	return done, err
}

// openPlace opens the folder that a legacy context was in, and notes the path of that context.
func openPlace(s *engine.Store, from *Origin, done *RollbackResult) (vfs.FS, error) {
	if filepath.IsAbs(from.path) {
		done.Path = from.path
		return vfs.OS(filepath.Dir(from.path))
	}
	if !filepath.IsLocal(filepath.FromSlash(from.path)) {
		return nil, fmt.Errorf("%w: the context does not record the path of its original", engine.ErrNotLegacy)
	}
	done.Path = filepath.Join(s.Path(), filepath.FromSlash(from.path))
	return s.FS.Sub(path.Dir(from.path))
}

// verifyUnchanged fails with [engine.ErrConflict] if a rollback would not reproduce what the context was migrated from.
// With lenient, an unavailable message counts as missing.
func verifyUnchanged(ctx context.Context, c *engine.Context, f *legacy.File, lenient bool, progress func(done, all int64)) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	failed := &differences{}
	to := f.Compare(failed.add)
	if err := (&legacyWriter{c: c, lenient: lenient, progress: progress}).run(ctx, to); err != nil {
		return err
	}
	if err := to.Finish(); err != nil {
		return err
	}
	if failed.count > 0 {
		return failed
	}
	return nil
}

// findBackup looks for the original of a migration: in its place, or next to it with the suffix.
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
			return "", nil, fmt.Errorf("cannot find %s: %w", legacy.BackupName(at, 1), fs.ErrNotExist)
		case errors.Is(err, fs.ErrNotExist):
			return "", nil, fmt.Errorf("%s has changed since the migration: %w", filepath.Join(filepath.Dir(at), found), legacy.ErrChanged)
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
