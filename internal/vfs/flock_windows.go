package vfs

import (
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// fileLock is the system's lock on a file.
type fileLock struct {
	f         *flock.Flock
	exclusive bool
}

func newFileLock(path string) *fileLock {
	// The lock does not create the file: the path may lead elsewhere.
	return &fileLock{f: flock.New(path, flock.SetFlag(os.O_RDWR|openFlags))}
}

// try takes the lock if no other process has it.
func (l *fileLock) try(shared bool) (ok bool, err error) {
	if shared {
		return l.f.TryRLock()
	}
	l.exclusive, err = l.f.TryLock()
	return l.exclusive, err
}

// wait waits for the lock.
func (l *fileLock) wait(shared bool) error {
	if shared {
		return l.f.RLock()
	}
	err := l.f.Lock()
	l.exclusive = err == nil
	return err
}

func (l *fileLock) unlock() error {
	l.exclusive = false
	return l.f.Unlock()
}

// stat returns the Stat of the file that is open.
func (l *fileLock) stat() (fs.FileInfo, error) { return l.f.Stat() }

// close releases the lock and closes the file.
func (l *fileLock) close() error { return l.unlock() }
