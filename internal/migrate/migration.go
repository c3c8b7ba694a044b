package migrate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Options configures the migration of a legacy context.
type Options struct {
	// DryRun makes the context, validates it and removes it again. It uses staging, or a temporary folder where the
	// store is not writable; nothing else changes.
	DryRun bool
	// Progress receives how many bytes of the work are done, of how many. The migration reads the legacy context twice,
	// and its messages once more. Nil reports nothing.
	Progress func(done, all int64)
}

// Result is the result of a migration.
type Result struct {
	Path     string // the legacy context's former path
	Backup   string // its path now; empty in a dry run
	Context  uuid.UUID
	Branches int   // in the legacy context
	Messages int64 // in its pool
	Bytes    int64 // of its files
	Again    bool  // it was already migrated; only the rename was missing
}

// migration is the state of one migration.
type migration struct {
	s    *engine.Store
	o    Options
	from vfs.FS // the folder of the legacy context
	name string
	path string // absolute
	src  *legacy.File
	id   uuid.UUID
	info fs.FileInfo // of the file or folder, when it was opened
	text fs.FileInfo // of the file, or of context.json in the folder
	done Result
}

// hasMoved reports whether the legacy context has lost its name: the name is free, or belongs to another file or to
// the migrated context.
func (g *migration) hasMoved() bool {
	now, err := g.from.Lstat(g.name)
	if err != nil || g.info == nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if !vfs.SameFile(now, g.info) {
		return true
	}
	format, err := legacy.Detect(g.from, g.name)
	return errors.Is(err, fs.ErrNotExist) || format == legacy.Context
}

// open reads the legacy context under its own name or the one with the suffix.
func (g *migration) open(ctx context.Context, name string) (err error) {
	if g.info, err = g.from.Lstat(name); err != nil {
		return err
	}
	g.text = g.info
	if g.info.IsDir() {
		if g.text, err = g.from.Lstat(name + "/" + legacy.ContextFile); errors.Is(err, fs.ErrNotExist) {
			g.text, err = g.info, nil // Open reports the error
		}
	}
	if err == nil {
		g.src, err = legacy.Open(g.from, name, g.options(ctx, 0))
	}
	if err != nil {
		return err
	}
	g.id = g.src.ContextID()
	if there, err := g.s.FS.Lstat(name); err == nil && vfs.SameFile(there, g.info) {
		// The name of a legacy context in the store determines its id.
		if stem, ok := legacy.NamedAfterContext(g.name); ok {
			g.id = uuid.MustParse(stem)
		} else if id, ok := ctxfolder.ParseID(g.name); ok {
			g.id = id
		}
	}
	g.done = Result{Context: g.id, Branches: len(g.src.Branches), Messages: int64(g.src.Len()), Bytes: g.src.Size}
	return nil
}

// inPlace reports whether the legacy context is a folder in the place of the new context.
func (g *migration) inPlace() bool {
	there, err := g.s.FS.Lstat(g.id.String())
	return err == nil && vfs.SameFile(there, g.info)
}

// place returns the path of the legacy context. Inside the store it is relative, so that it stays valid when the store
// is moved or copied.
func (g *migration) place() string {
	dir, within, err := engine.RelativePath(filepath.Dir(g.path), g.s.Path())
	if err != nil || !within {
		return g.path
	}
	return filepath.ToSlash(filepath.Join(dir, g.name))
}

// options returns the options for a pass over the legacy context.
func (g *migration) options(ctx context.Context, pass int64) legacy.Options {
	o := legacy.Options{Limit: g.s.Options.MaxMessage, Stop: ctx.Err}
	if g.o.Progress != nil {
		size := g.text.Size()
		o.Progress = func(read int64) { g.o.Progress(pass*size+read, 3*max(size, read)) }
	}
	return o
}
