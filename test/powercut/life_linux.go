package powercut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ctxdir/ctxdir/test/audit"
	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// life is a file system with a store on it, from one cut to the next.
type life struct {
	fs      string
	dir     string
	random  *rand.Rand
	o       Options
	disk    *disk.Disk // nil while it is not there
	mounted bool
	cuts    int
	shared  []uuid.UUID
	shown   audit.Shown
	sound   bool // nothing of it is worth being kept
}

func (l *life) path(name string) string { return filepath.Join(l.dir, name) }

// begin makes the file system and the store.
func (l *life) begin(ctx context.Context) error {
	for _, folder := range []string{"disk", "mnt"} {
		if err := os.MkdirAll(l.path(folder), 0o700); err != nil {
			return err
		}
	}
	if err := disk.Make(l.fs, l.path("image"), imageSize); err != nil {
		return err
	}
	if err := l.mount(); err != nil {
		return err
	}
	if err := os.Mkdir(l.path("mnt/legacy"), 0o700); err != nil {
		return err
	}
	if err := syncFolder(l.path("mnt")); err != nil { // a cut must not take the folder
		return err
	}
	shared, err := writer.Found(l.path("mnt/store"), 2)
	if err != nil {
		return err
	}
	l.shared = shared
	l.shown, err = audit.Look(ctx, l.path("mnt/store"))
	return err
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// mount switches the disk on and mounts its file system.
func (l *life) mount() (err error) {
	if l.disk, err = disk.On(l.path("image"), l.path("disk")); err != nil {
		return err
	}
	if err = l.disk.Mount(l.fs, l.path("mnt")); err == nil {
		l.mounted = true
	}
	return err
}

// unmount takes file system and disk away.
func (l *life) unmount() error {
	if l.mounted {
		if err := disk.Unmount(l.path("mnt")); err != nil {
			return err
		}
		l.mounted = false
	}
	if l.disk == nil {
		return nil
	}
	d := l.disk
	l.disk = nil
	return d.Remove()
}

// end ends the file system. What is worth a look stays: the image, the accounts, and with Keep the image as the last
// cut left it.
func (l *life) end() error {
	if err := l.unmount(); err != nil || !l.sound {
		return err
	}
	return os.RemoveAll(l.dir)
}

// save copies the image as it is, with its holes.
func (l *life) save() error {
	if !l.o.Keep {
		return nil
	}
	out, err := exec.Command("cp", "--sparse=always", l.path("image"), l.path("image-cut")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy the image: %w: %s", err, out)
	}
	return nil
}
