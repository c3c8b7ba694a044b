//go:build !linux

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

func (o *osFS) Lstat(name string) (fs.FileInfo, error) { return o.lstatInRoot(name) }

func (o *osFS) create(name string, flag int) (*os.File, error) { return o.createInRoot(name, flag) }

func (o *osFS) openFolder(string) (*os.File, fs.FileInfo, error) {
	return nil, nil, errors.ErrUnsupported
}

// openTree is never called: openFolder opens nothing.
func openTree(*os.File) (*os.Root, error) { return nil, errors.ErrUnsupported }

func (o *osFS) openExisting(name string, flag int) (*os.File, error) {
	return o.openInRoot(name, flag, false)
}

func withoutRoot(f *os.File) (*os.File, error) { return f, nil }

func number(fs.FileInfo) (fileNumber, bool) { return fileNumber{}, false }

// Yield does something on Linux only, see there.
func Yield() {}

func rest(d time.Duration) { time.Sleep(d) }
