//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// fileLock is the system's lock on a file. It keeps the file open between two holds: opening it takes longer than all
// else.
type fileLock struct {
	path      string
	f         *os.File
	info      fs.FileInfo // of f
	exclusive bool
}

func newFileLock(path string) *fileLock { return &fileLock{path: path} }

// open opens the file, but does not create it: the path may lead elsewhere.
func (l *fileLock) open() (err error) {
	if l.f != nil {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|openFlags, 0)
	if err != nil {
		return err
	}
	if l.info, err = f.Stat(); err != nil {
		_ = f.Close()
		return err
	}
	l.f = f
	return nil
}

// try takes the lock if no other process has it.
func (l *fileLock) try(shared bool) (bool, error) {
	err := l.lock(shared, unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// wait waits for the lock.
func (l *fileLock) wait(shared bool) error { return l.lock(shared, 0) }

func (l *fileLock) lock(shared bool, how int) error {
	if err := l.open(); err != nil {
		return err
	}
	if shared {
		how |= unix.LOCK_SH
	} else {
		how |= unix.LOCK_EX
	}
	err := l.flock(how)
	l.exclusive = err == nil && !shared
	return err
}

func (l *fileLock) unlock() error {
	l.exclusive = false
	if l.f == nil {
		return nil
	}
	return l.flock(unix.LOCK_UN)
}

func (l *fileLock) flock(how int) (err error) {
	c, err := l.f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := c.Control(func(fd uintptr) {
		for {
			if err = unix.Flock(int(fd), how); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(cerr, err)
}

// stat returns the Stat of the file that is open.
func (l *fileLock) stat() (fs.FileInfo, error) { return l.info, nil }

// close releases the lock and closes the file.
func (l *fileLock) close() error {
	l.exclusive = false
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}
