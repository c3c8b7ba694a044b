package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrTooLarge is wrapped by errors about a file larger than its kind may be.
var ErrTooLarge = errors.New("file is too large")

// ErrNotRegular is wrapped by errors about a folder, link or device where a file should be.
var ErrNotRegular = errors.New("not a regular file")

// ReadOpened returns the content of an open file whose Stat is info.
func ReadOpened(f File, info fs.FileInfo, name string, limit int64) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	if info.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	b := make([]byte, info.Size())
	n, err := f.ReadAt(b, 0)
	if err != nil && !(errors.Is(err, io.EOF)) {
		return nil, err
	}
	return b[:n], nil
}
