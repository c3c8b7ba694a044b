package ctxdir

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
)

// MigrateOptions changes how a legacy context is migrated.
type MigrateOptions struct {
	// DryRun makes the context in a temporary folder, validates it and removes it again: nothing else changes.
	DryRun bool
	// Progress is told how many bytes of the legacy context were read, of how many: it is read twice, and its messages once more. Nil for
	// nobody.
	Progress func(done, all int64)
}

// Migrated tells of a legacy context that became a context.
type Migrated struct {
	Path     string // where it was
	Backup   string // where it is now; empty in a dry run
	Context  uuid.UUID
	Branches int   // that it had
	Messages int64 // in its pool
	Bytes    int64 // of its files
	Again    bool  // it had been migrated before, and only was to be renamed
}

// ValidationError says in what a migrated context would differ from the legacy one. Nothing was changed.
type ValidationError struct {
	Discrepancies []legacy.Discrepancy // all of them, but no more than 1,000
	Count         int64                // how many there are
}

const mostDiscrepancies = 1000

func (e *ValidationError) Error() string {
	return fmt.Sprintf("the migrated context would differ in %d places, the first: %s", e.Count, e.Discrepancies[0])
}

func (e *ValidationError) add(d legacy.Discrepancy) {
	if e.Count++; len(e.Discrepancies) < mostDiscrepancies {
		e.Discrepancies = append(e.Discrepancies, d)
	}
}

// Migrate makes a context of a legacy one, a file or the folder of a split one: whole, with all that is in it. What the new context gives
// back is compared with the original before it gets its place; then the old file or folder gets the suffix .old. Stopped at any moment, it can be done
// again. A legacy file that lies in the store as ID.json becomes the context ID; others bear their id in them.
//
// It fails with [ErrNotLegacy], also for what has that suffix already; with [ErrDamaged] when the legacy context cannot be read to its end; with [ErrTooLarge]; with a
// [*ValidationError]; and with [ErrExist] when there is a context of that id that did not come from this file. In all these cases nothing was changed.
//
// Crash order: the context is staged and durable, payloads first, and validated, before it gets its place; only then the old
// file loses its name. In between both are there, and the context counts.
func (s *Store) Migrate(ctx context.Context, path string, o MigrateOptions) (Migrated, error) {
	done, err := s.migratePath(ctx, path, o)
	return done, public(Error{Op: "migrate", Path: path, Context: done.Context}, err)
}

func (s *Store) migratePath(ctx context.Context, path string, o MigrateOptions) (Migrated, error) {
	path = legacy.Whole(path)
	abs, err := filepath.Abs(path)
	if err != nil {
		return Migrated{Path: path}, err
	}
	if filepath.Base(path) != filepath.Base(abs) { // it is "." or the like
		path = abs
	}
	from, err := vfs.OS(filepath.Dir(abs))
	if err != nil {
		return Migrated{Path: path}, err
	}
	defer from.Close()
	if legacy.IsBackup(filepath.Base(abs)) {
		return Migrated{Path: path}, fmt.Errorf("%w: its name is that of a backup of what was migrated", ErrNotLegacy)
	}
	g := &migrating{s: s, o: o, from: from, name: filepath.Base(abs), path: abs}
	done, err := g.run(ctx)
	if done.Path = path; done.Backup != "" {
		done.Backup = filepath.Join(filepath.Dir(path), done.Backup)
	}
	return done, err
}

// migrateInStore migrates the legacy context that lies in the store in the place of a context of that id.
func (s *Store) migrateInStore(ctx context.Context, name string) error {
	g := &migrating{s: s, from: s.fs, name: name, path: filepath.Join(s.path, name)}
	if abs, err := filepath.Abs(g.path); err == nil {
		g.path = abs
	}
	_, err := g.run(ctx)
	return err
}

// migrating is one migration.
type migrating struct {
	s    *Store
	o    MigrateOptions
	from vfs.FS // the folder that it lies in
	name string
	path string // absolute
	src  *legacy.File
	id   uuid.UUID
	info fs.FileInfo // of the file or folder, when it was opened
	text fs.FileInfo // of the file, or of context.json in the folder
	// inPlace says that the legacy context is a folder that lies where the new one belongs.
	inPlace bool
	done    Migrated
}

func (g *migrating) run(ctx context.Context) (Migrated, error) {
	if g.s.readOnly && !g.o.DryRun {
		return g.done, ErrReadOnly
	}
	if err := g.open(); err != nil {
		return g.done, err
	}
	defer g.src.Close()
	if g.o.DryRun {
		return g.done, g.tryOut(ctx)
	}
	lock := g.s.fs.Lock(ctxfolder.Locks + "/" + g.id.String())
	defer lock.Close()
	if err := g.s.acquire(ctx, lock); err != nil {
		return g.done, err
	}
	defer lock.Release()
	there, err := g.there(ctx)
	if err != nil {
		return g.done, err
	}
	if !there {
		blobs := blobsInUse{s: g.s}
		defer blobs.release()
		if err := blobs.hold(ctx); err != nil {
			return g.done, err
		}
		err := g.make(ctx, g.s, true)
		if err == nil {
			err = g.publish()
		}
		if err != nil {
			_ = vfs.RemoveAll(g.s.fs, ctxfolder.StagingFolder(g.id))
			return g.done, err
		}
	}
	g.done.Again = there
	return g.done, g.retire()
}

// open reads the legacy context for the first time.
func (g *migrating) open() (err error) {
	if g.info, err = g.from.Lstat(g.name); err != nil {
		return err
	}
	g.text = g.info
	if g.info.IsDir() {
		if g.text, err = g.from.Lstat(g.name + "/" + legacy.ContextFile); errors.Is(err, fs.ErrNotExist) {
			return legacy.ErrNotLegacy
		}
	}
	if err == nil {
		g.src, err = legacy.Open(g.from, g.name, g.options(0))
	}
	if err != nil {
		return err
	}
	g.id = g.src.ContextID()
	if there, err := g.s.fs.Lstat(g.name); err == nil && vfs.SameFile(there, g.info) {
		// What lies in the store is known by its name.
		if stem, ok := legacy.NamedAfterContext(g.name); ok {
			g.id = uuid.MustParse(stem)
		} else if id, ok := ctxfolder.ParseID(g.name); ok {
			g.id = id
		}
	}
	if there, err := g.s.fs.Lstat(g.id.String()); err == nil {
		g.inPlace = vfs.SameFile(there, g.info)
	}
	g.done = Migrated{Context: g.id, Branches: len(g.src.Branches), Messages: int64(g.src.Len()), Bytes: g.src.Size}
	return nil
}

// options are those of a pass over the legacy context.
func (g *migrating) options(pass int64) legacy.Options {
	o := legacy.Options{Limit: g.s.opts.maxMessage}
	if g.o.Progress != nil {
		size := g.text.Size()
		o.Progress = func(read int64) { g.o.Progress(pass*size+read, 3*max(size, read)) }
	}
	return o
}

// tryOut does everything but to change anything.
func (g *migrating) tryOut(ctx context.Context) error {
	if _, err := g.there(ctx); err != nil {
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
func (g *migrating) make(ctx context.Context, to *Store, durable bool) error {
	st := &stagingLegacy{to: to, src: g.src, id: g.id, at: g.text.ModTime(), durable: durable, path: g.path}
	if g.o.Progress != nil {
		size := g.src.Size
		st.progress = func(read int64) { g.o.Progress(size+read, 3*size) }
	}
	if err := st.run(ctx); err != nil {
		return err
	}
	return g.validate(ctx, to)
}

// validate reads the legacy context once more, and compares it with what the staged one gives back.
func (g *migrating) validate(ctx context.Context, staged *Store) error {
	again, err := legacy.Open(g.from, g.name, g.options(2))
	if err != nil {
		return err
	}
	defer again.Close()
	if again.Digest != g.src.Digest {
		return legacy.ErrChanged
	}
	in, err := staged.fs.Sub(ctxfolder.Staging)
	if err != nil {
		return err
	}
	defer in.Close()
	c, err := staged.openIn(in, g.id)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.same(ctx, again, nil)
}

// there reports whether the context has been made already, of this very file. It fails with ErrExist when there is another one.
func (g *migrating) there(ctx context.Context) (bool, error) {
	if info, err := g.s.fs.Lstat(g.id.String()); g.inPlace || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	} else if !info.IsDir() {
		return false, fmt.Errorf("%w: something else lies where the context belongs", ErrExist)
	}
	c, err := g.s.open(ctx, g.id)
	if err != nil {
		return false, errors.Join(ErrExist, err)
	}
	defer c.Close()
	if from := parseLegacy(c.current()); from == nil || from.sum != hex.EncodeToString(g.src.Digest[:]) {
		return false, fmt.Errorf("%w: context %s, and it did not come from this file", ErrExist, g.id)
	}
	return true, nil
}

// publish gives the context its place. The lock is held.
func (g *migrating) publish() error {
	if err := g.unchanged(); err != nil {
		return err
	}
	if g.inPlace {
		old, err := g.backupName()
		if err != nil {
			return err
		}
		g.done.Backup = old
		return ctxfolder.PublishBeside(g.s.fs, g.id, old)
	}
	if err := g.s.fs.Rename(ctxfolder.StagingFolder(g.id), g.id.String()); err != nil {
		return err
	}
	return g.s.fs.SyncDir(".")
}

// unchanged fails with legacy.ErrChanged when the file is not the one that was opened, or was written to.
func (g *migrating) unchanged() error {
	names := []string{g.name}
	if g.info.IsDir() {
		names = append(names, g.name+"/"+legacy.ContextFile)
	}
	for i, was := range []fs.FileInfo{g.info, g.text}[:len(names)] {
		now, err := g.from.Lstat(names[i])
		if err != nil || !vfs.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
			return cmp.Or(err, legacy.ErrChanged)
		}
	}
	return nil
}

// retire gives the legacy context the suffix, now that the new one is durable.
func (g *migrating) retire() error {
	if g.done.Backup != "" {
		return nil // its place was needed
	}
	if err := g.unchanged(); err != nil {
		return err
	}
	for {
		old, err := g.backupName()
		if err != nil {
			return err
		}
		if err = g.from.RenameNew(g.name, old); errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		g.done.Backup = old
		return g.from.SyncDir(".")
	}
}

// backupName finds a name for what was migrated: with .old, or where that is taken with .old-2, .old-3 and so on.
func (g *migrating) backupName() (string, error) {
	for n := 1; ; n++ {
		name := legacy.BackupName(g.name, n)
		if _, err := g.from.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// scratchStore makes a store in a temporary folder, for contexts that nobody is to keep. remove closes and removes it.
func scratchStore(like *Store) (s *Store, remove func(), err error) {
	dir, err := os.MkdirTemp("", "ctxdir-")
	if err != nil {
		return nil, nil, err
	}
	threshold := like.TextThreshold()
	s, err = Init(dir, WithDurability(Relaxed), WithFoldBytes(-1), WithTextThreshold(threshold), WithMaxMessage(like.opts.maxMessage), WithPool(like.opts.pool))
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return s, func() {
		_ = s.Close()
		_ = os.RemoveAll(dir)
	}, nil
}
