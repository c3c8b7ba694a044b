package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// checkMovable makes sure, before any change, that the legacy context can get its suffix in the end: its folder is
// writable and accepts a name of that length.
func (g *migration) checkMovable() error {
	old, err := g.backupName()
	if err != nil {
		return g.immovableError(err)
	}
	probe := g.name + "~ctx" + strings.TrimPrefix(old, g.name+".old") // as long as the later name, and not a temporary file of the old program
	f, err := g.from.OpenFile(probe, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(f.Close(), g.from.Remove(probe))
	}
	return g.immovableError(err)
}

// immovableError says why the legacy context cannot get its suffix.
func (g *migration) immovableError(err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	var between *os.LinkError
	if errors.As(err, &at) {
		err = at.Err
	} else if errors.As(err, &between) {
		err = between.Err
	}
	return fmt.Errorf("%s in %s cannot be renamed to %s: %w", g.name, filepath.Dir(g.path), legacy.BackupName(g.name, 1), err)
}

// retire gives the legacy context the suffix once the new one is durable. After a last-moment write to it, retire
// renames it back.
func (g *migration) retire() error {
	for {
		old, err := g.backupName()
		if err == nil {
			err = g.from.RenameNew(g.name, old)
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return g.immovableError(err)
		}
		g.done.Backup = old
		if err = g.src.Unchanged(old); err == nil {
			return g.from.SyncDir(".")
		}
		berr := g.from.RenameNew(old, g.name)
		if berr == nil {
			g.done.Backup = ""
		}
		return errors.Join(err, berr, g.from.SyncDir("."))
	}
}

// withdraw removes the migrated context when the legacy one could not get its suffix. The held lock proves that no
// process has written to it.
//
// Crash order: the legacy context has its name, durably. Before the rename the context counts; after it SweepStaging
// removes what is left.
func (g *migration) withdraw() error {
	staged := ctxfolder.StagingFolder(g.id)
	if err := g.s.FS.Rename(g.id.String(), staged); err != nil {
		return err
	}
	if err := g.s.FS.SyncDir("."); err != nil {
		return err
	}
	return vfs.RemoveAll(g.s.FS, staged)
}

// backupName returns a free name for the migrated file or folder: with .old, or else with .old-2, .old-3 and so on.
func (g *migration) backupName() (string, error) {
	for n := 1; ; n++ {
		name := legacy.BackupName(g.name, n)
		if _, err := g.from.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}
