package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func (f osFile) Datasync() error {
	return f.control("fdatasync", unix.Fdatasync)
}

func (f osFile) SetModTime(t time.Time) error {
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: t.Unix(), Nsec: int64(t.Nanosecond())}}
	return f.control("utimensat", func(fd int) error {
		return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH)
	})
}

// renameNew works in the folder d itself: from and to are plain names.
func renameNew(d *os.File, from, to string) error {
	if d == nil || strings.ContainsRune(from+to, '/') {
		return errors.ErrUnsupported
	}
	err := osFile{d}.control("renameat2", func(fd int) error {
		return unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

func syncAll(f *os.File) error {
	return osFile{f}.control("syncfs", unix.Syncfs)
}

func (f osFile) control(op string, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := c.Control(func(fd uintptr) {
		for {
			if err = call(int(fd)); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	if cerr != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: fs.ErrClosed}
	}
	if err != nil {
		return os.NewSyscallError(op, err)
	}
	return nil
}
