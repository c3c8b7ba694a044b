package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// readRegular is one call of openat2, which follows no link on the way either. An old kernel has no such call, and
// a sandbox may refuse it.
func (o *osFS) readRegular(name string, limit int64) ([]byte, error) {
	b, _, err := o.readWith(openBelow, name, limit)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
		return readRegular(o, name, limit)
	}
	return b, err
}

// openBelow opens a file in a folder or below it for reading.
func openBelow(dir int, name string) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   uint64(unix.O_RDONLY | openFlags | unix.O_CLOEXEC | largeFiles),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	err = again(func() error {
		fd, err = unix.Openat2(dir, name, &how)
		return err
	})
	return fd, err
}
