package vfs

import (
	"errors"
	"io/fs"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// unnameable reports that the system cannot name an unnamed file: an old kernel without /proc.
var unnameable atomic.Bool

func (o *osFS) createWhole(name string, data []byte, at time.Time) error {
	if !plain(name) || unnameable.Load() {
		return createWhole(o, name, data, at)
	}
	err := o.at("linkat", name, func(dir int) error { return createUnnamed(dir, name, data, at) })
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// Probably this file system does not support unnamed files. Any other error will recur.
	return createWhole(o, name, data, at)
}

// createUnnamed writes a file without any name (O_TMPFILE), and then names it.
func createUnnamed(dir int, name string, data []byte, at time.Time) error {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Openat(dir, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC|largeFiles, filePerm)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is synced
	if err := fill(fd, data, at); err != nil {
		return err
	}
	err = unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		unnameable.Store(true)
	}
	return err
}
