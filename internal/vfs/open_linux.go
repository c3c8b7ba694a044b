package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openExisting opens a file of the folder itself with one call. The system refuses to open a link, and to open a folder
// for writing.
func (o *osFS) openExisting(name string, flag int) (*os.File, error) {
	if !plain(name) {
		return o.openInRoot(name, flag, false)
	}
	var f *os.File
	err := o.at("openat", name, func(dir int) error {
		// A FIFO in the place of a file would block a reader, but not a caller that may write.
		nonblock := 0
		if flag&os.O_RDWR == 0 {
			nonblock = unix.O_NONBLOCK
		}
		var fd int
		err := again(func() (err error) {
			fd, err = unix.Openat(dir, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|largeFiles|nonblock, 0)
			return err
		})
		if err == nil {
			f = os.NewFile(uintptr(fd), o.dir+"/"+name)
		}
		return err
	})
	if errors.Is(err, syscall.ELOOP) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	return f, err
}
