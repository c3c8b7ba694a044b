//go:build unix

package vfs

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// A FIFO where a file of ours should be must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | largeFiles

// Nor must one where a folder should be.
const folderFlags = syscall.O_DIRECTORY | syscall.O_NONBLOCK

// restrict makes the permissions of a new file those asked for, where the umask took some away.
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
	// The system's own stamp may be a tick behind, and a new file may get the number of the last one but one: who knows that one would take this for it.
	_ = osFile{p.File}.SetModTime(time.Now())
	if err := p.CloseAtomicallyReplace(); err != nil {
		_ = p.Cleanup()
		return err
	}
	return nil
}

func syncDir(f *os.File) error { return f.Sync() }
