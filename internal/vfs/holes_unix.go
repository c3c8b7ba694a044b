//go:build linux || darwin

package vfs

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

func (f osFile) data(off, size int64) (from, to int64, err error) {
	from, err = f.Seek(off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case err != nil:
		return off, size, nil // the file system does not report holes
	}
	if to, err = f.Seek(from, unix.SEEK_HOLE); err != nil {
		return from, size, nil
	}
	_, err = f.Seek(0, io.SeekStart)
	return from, min(to, size), err
}
