package erase

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// eachLine calls f for each line of a regular file, with its newline. The line is valid until f returns. A missing file
// has no lines.
func eachLine(fsys vfs.FS, path string, f func(line []byte) error) error {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := fsys.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for part, err := range vfs.Data(file) {
		if err == nil {
			err = eachLineOf(part, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachLineOf(from io.Reader, f func(line []byte) error) error {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
