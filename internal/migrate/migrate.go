// Package migrate converts contexts of ctxdir's predecessor, and converts them back.
//
// [Convert] makes a context of a legacy file or folder and compares the two before it publishes the context. [Open] and
// [View] do this for a legacy context that is opened in a store. [Rollback] writes a context in the legacy format, and
// [RestoreLegacy] puts the original back in its place. An [Origin] in the metadata keeps the values of the legacy
// context that the context cannot reproduce, so that a rollback yields the original.
//
// The package uses package legacy, which reads and writes the old format, and package engine. A conversion happens in
// staging/ of the store, or in a temporary store.
package migrate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"unicode/utf8"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Convert converts a legacy context, a file or the folder of a split one, into a context with everything in it. It
// compares the new context with the original before it publishes it. Then it adds the suffix .old to the name of the
// old file or folder. An interrupted migration can be repeated. A legacy file in the store named ID.json becomes the
// context ID; other legacy contexts contain their id.
//
// Convert fails with [engine.ErrInvalid] for a path that is not UTF-8; with [engine.ErrNotLegacy], also for a path that
// already has the suffix; with [engine.ErrDamaged] when the legacy context cannot be read to its end; with
// [engine.ErrTooLarge]; with [engine.ErrConflict]; and with [engine.ErrExist] when a context of that id did not come
// from this file. After each of these errors nothing has changed.
//
// Crash order: the staged context is durable, payloads first, and validated before it is published. Only then the old
// file is renamed. In between both exist, and the context counts.
func Convert(ctx context.Context, s *engine.Store, path string, o Options) (Result, error) {
	done, err := convertPath(ctx, s, path, o)
	return done, wrap(engine.Error{Op: "migrate", Path: path, Context: done.Context}, err)
}

func convertPath(ctx context.Context, s *engine.Store, path string, o Options) (Result, error) {
	path = legacy.Whole(path)
	abs, err := filepath.Abs(path)
	if err != nil {
		return Result{Path: path}, err
	}
	if filepath.Base(path) != filepath.Base(abs) { // a path such as "."
		path = abs
	}
	from, err := vfs.OS(filepath.Dir(abs))
	if err != nil {
		return Result{Path: path}, err
	}
	defer from.Close()
	if !utf8.ValidString(abs) { // metadata.json could not record the path
		return Result{Path: path}, fmt.Errorf("%w: the path %+q is not valid UTF-8", engine.ErrInvalid, path)
	}
	if legacy.IsBackup(filepath.Base(abs)) {
		return Result{Path: path}, fmt.Errorf("%w: it is named like the backup of a migrated context", engine.ErrNotLegacy)
	}
	g := &migration{s: s, o: o, from: from, name: filepath.Base(abs), path: abs}
	done, err := g.run(ctx)
	if done.Path = path; done.Backup != "" {
		done.Backup = filepath.Join(filepath.Dir(path), done.Backup)
	}
	return done, err
}

// convertInStore migrates a legacy context that occupies the place of the context of its id.
func convertInStore(ctx context.Context, s *engine.Store, name string) error {
	g := &migration{s: s, from: s.FS, name: name, path: filepath.Join(s.Path(), name)}
	if abs, err := filepath.Abs(g.path); err == nil {
		g.path = abs
	}
	_, err := g.run(ctx)
	return err
}

func (g *migration) run(ctx context.Context) (Result, error) {
	if g.s.ReadOnly && !g.o.DryRun {
		return g.done, engine.ErrReadOnly
	}
	if err := g.open(ctx, g.name); err != nil {
		if g.hasMoved() {
			if was, berr := g.wasConverted(ctx); was || berr != nil {
				err = berr
			}
		}
		return g.done, err
	}
	defer func() { _ = g.src.Close() }()
	if g.o.DryRun {
		err := g.tryOut(ctx)
		return g.done, err
	}
	lock := g.s.FS.Lock(ctxfolder.Locks + "/" + g.id.String())
	defer lock.Close()
	if err := g.s.Acquire(ctx, lock); err != nil {
		return g.done, err
	}
	defer lock.Release()
	there, err := g.isConverted(ctx)
	switch {
	case err != nil:
	case there:
		err = g.repeat(ctx)
	default:
		err = g.convert(ctx)
	}
	return g.done, err
}

// convert makes and publishes the context, then renames the legacy one. The caller holds the lock.
func (g *migration) convert(ctx context.Context) error {
	if err := g.checkMovable(); err != nil {
		return err
	}
	blobs := engine.BlobHold{Store: g.s}
	defer blobs.Release()
	if err := blobs.Hold(ctx); err != nil {
		return err
	}
	err := g.make(ctx, g.s, true)
	if err == nil {
		err = g.publish()
	}
	if err != nil {
		_ = vfs.RemoveAll(g.s.FS, ctxfolder.StagingFolder(g.id))
		return err
	}
	if g.done.Backup != "" {
		return nil // publish had to rename it already
	}
	if err = g.retire(); err != nil && g.done.Backup == "" {
		err = errors.Join(err, g.withdraw())
	}
	return err
}

// repeat handles a context that is already migrated: at most the suffix is missing. The caller holds the lock.
func (g *migration) repeat(ctx context.Context) error {
	g.done.Again = true
	if !g.hasMoved() {
		return g.retire()
	}
	// The other migration has also renamed it.
	_ = g.src.Close()
	was, err := g.wasConverted(ctx)
	if err == nil && !was {
		err = legacy.ErrChanged
	}
	return err
}

// wasConverted reports whether the missing legacy context was migrated and has its suffix. It waits for a process that
// is publishing the context.
func (g *migration) wasConverted(ctx context.Context) (bool, error) {
	for n := 1; ; n++ {
		old := legacy.BackupName(g.name, n)
		if _, err := g.from.Lstat(old); err != nil {
			return false, nil
		}
		if g.open(ctx, old) != nil {
			continue
		}
		was, err := g.isOriginOf(ctx)
		_ = g.src.Close()
		if was {
			g.done.Again, g.done.Backup = true, old
			return true, nil
		}
		if errors.Is(err, engine.ErrLocked) || ctx.Err() != nil {
			return false, err
		}
	}
}

// tryOut performs a dry run.
func (g *migration) tryOut(ctx context.Context) error {
	if _, err := g.isConverted(ctx); err != nil {
		return err
	}
	to, remove, err := scratchStore(g.s)
	if err != nil {
		return err
	}
	defer remove()
	return g.make(ctx, to, false)
}

// make stages the context and validates it.
func (g *migration) make(ctx context.Context, to *engine.Store, durable bool) error {
	st := &stager{to: to, src: g.src, id: g.id, at: g.text.ModTime(), durable: durable, path: g.place()}
	if g.o.Progress != nil {
		size := g.src.Size
		st.progress = func(read int64) { g.o.Progress(size+read, 3*size) }
	}
	if err := st.run(ctx); err != nil {
		return err
	}
	return g.validate(ctx, to)
}

// validate reads the legacy context again and compares it with the staged context.
func (g *migration) validate(ctx context.Context, staged *engine.Store) error {
	again, err := legacy.Open(g.from, g.name, g.options(ctx, 2))
	if err != nil {
		return err
	}
	defer again.Close()
	if again.Digest != g.src.Digest {
		return legacy.ErrChanged
	}
	in, err := staged.FS.Sub(ctxfolder.Staging)
	if err != nil {
		return err
	}
	defer in.Close()
	c, err := staged.OpenIn(in, g.id)
	if err != nil {
		return err
	}
	defer c.Close()
	return verifyUnchanged(ctx, c, again, false, nil)
}

// isConverted reports whether the context has already been made of this very file. It fails with ErrExist for another
// context.
func (g *migration) isConverted(ctx context.Context) (bool, error) {
	if info, err := g.s.FS.Lstat(g.id.String()); errors.Is(err, fs.ErrNotExist) || g.inPlace() {
		return false, nil
	} else if err != nil {
		return false, err
	} else if !info.IsDir() {
		return false, fmt.Errorf("%w: another file is in the context's place", engine.ErrExist)
	}
	return g.isOriginOf(ctx)
}

// isOriginOf reports whether the context of that id was made of this very file. It fails with ErrExist when it was not.
func (g *migration) isOriginOf(ctx context.Context) (bool, error) {
	c, err := g.s.Open(ctx, g.id)
	if err != nil {
		return false, errors.Join(engine.ErrExist, err)
	}
	defer c.Close()
	if from := ParseOrigin(c.Current()); from == nil || from.sum != hex.EncodeToString(g.src.Digest[:]) {
		return false, fmt.Errorf("%w: context %s, which was not migrated from this file", engine.ErrExist, g.id)
	}
	return true, nil
}

// publish moves the staged context into its place. The caller holds the lock.
func (g *migration) publish() error {
	if err := g.src.Unchanged(g.name); err != nil {
		return err
	}
	if g.inPlace() {
		old, err := g.backupName()
		if err == nil {
			err = ctxfolder.PublishBeside(g.s.FS, g.id, old, func() error { return g.src.Unchanged(old) })
		}
		if err == nil {
			g.done.Backup = old
		}
		return err
	}
	if err := g.s.FS.Rename(ctxfolder.StagingFolder(g.id), g.id.String()); err != nil {
		return err
	}
	if err := g.s.FS.SyncDir("."); err != nil {
		return errors.Join(err, g.withdraw())
	}
	return nil
}
