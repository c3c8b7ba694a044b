package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir/internal/term"
)

// writeFile replaces a file with what write writes, once that is complete. Problems that write reports do not prevent
// it. A path that is not a regular file, such as /dev/stderr, is written to directly.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	if info, serr := os.Stat(path); serr == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		o := term.NewOutput(f, term.NoColours)
		return closeAfter(f.Close, closeAfter(o.Close, write(o)))
	}
	// A symbolic link keeps pointing at the file.
	if target, lerr := filepath.EvalSymlinks(path); lerr == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ctxtool-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Unwrap(err))
	}
	problems := buffered(f, write)
	if problems != nil && exitCode(context.Background(), problems) != exitProblems {
		f.Close()
		_ = os.Remove(f.Name())
		return problems
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return problems
}

func buffered(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 64<<10)
	err := write(w)
	if ferr := w.Flush(); ferr != nil {
		return ferr
	}
	return err
}
