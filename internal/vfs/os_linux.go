package vfs

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func (f osFile) Datasync() error {
	return f.control("fdatasync", unix.Fdatasync)
}

func (f osFile) SetModTime(t time.Time) error {
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(t.UnixNano())}
	return f.control("utimensat", func(fd int) error {
		return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH)
	})
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
			if err = call(int(fd)); err != unix.EINTR {
				return
			}
		}
	})
	if cerr != nil {
		return cerr
	}
	if err != nil {
		return os.NewSyscallError(op, err)
	}
	return nil
}
