//go:build unix

package vfs

import (
	"io/fs"
	"os"
	"time"

	"github.com/google/renameio/v2"
)

// restrict restores the requested permissions of a new file if the umask removed some.
func restrict(f *os.File, perm fs.FileMode) error {
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() == perm || !info.Mode().IsRegular() {
		return err
	}
	return f.Chmod(perm)
}

func replaceIn(dir *os.Root, name string, data []byte) error {
	p, err := renameio.NewPendingFile(name, renameio.WithRoot(dir), renameio.WithStaticPermissions(filePerm))
	if err != nil {
		return err
	}
	if _, err := p.Write(data); err != nil {
		_ = p.Cleanup()
		return err
	}
	// The system's stamp may be a tick behind, and a new file may get the inode number of the version before last. A
	// reader that knows that version would mistake this file for it.
	_ = osFile{p.File}.SetModTime(time.Now())
	if err := p.CloseAtomicallyReplace(); err != nil {
		_ = p.Cleanup()
		return err
	}
	return nil
}
