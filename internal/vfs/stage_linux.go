package vfs

import (
	"errors"
	"io/fs"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// unnamed is a staged file without any name (O_TMPFILE).
type unnamedFile struct {
	fs   *osFS
	fd   int
	name string
	data []byte // for a system that cannot name the file
	at   time.Time
}

// maxUnnamed bounds the descriptors that unnamed files of this process hold.
const maxUnnamed = 64

var (
	openUnnamed atomic.Int64
	unnameable  atomic.Bool // the system cannot name them: an old kernel without /proc
)

func (o *osFS) stageFile(name string, data []byte, at time.Time) (Staged, error) {
	if !plain(name) || unnameable.Load() {
		return stageFile(o, name, data, at)
	}
	if openUnnamed.Add(1) > maxUnnamed {
		openUnnamed.Add(-1)
		return stageFile(o, name, data, at)
	}
	u := &unnamedFile{fs: o, name: name, data: data, at: at}
	err := o.at("openat", name, func(dir int) (err error) {
		err = again(func() error {
			u.fd, err = unix.Openat(dir, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC|largeFiles, filePerm)
			return err
		})
		if err != nil {
			return err
		}
		if err = fill(u.fd, data, at); err != nil {
			_ = unix.Close(u.fd)
		}
		return err
	})
	if err == nil {
		return u, nil
	}
	// Probably this file system does not support unnamed files. Any other error will recur.
	openUnnamed.Add(-1)
	return stageFile(o, name, data, at)
}

func (u *unnamedFile) Create() error {
	defer u.Discard()
	err := u.fs.at("linkat", u.name, func(dir int) error {
		err := unix.Linkat(u.fd, "", dir, u.name, unix.AT_EMPTY_PATH)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(u.fd), dir, u.name, unix.AT_SYMLINK_FOLLOW)
	})
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	unnameable.Store(true)
	s, err := stageFile(u.fs, u.name, u.data, u.at)
	if err != nil {
		return err
	}
	return s.Create()
}

func (u *unnamedFile) Discard() {
	_ = unix.Close(u.fd)
	openUnnamed.Add(-1)
}
