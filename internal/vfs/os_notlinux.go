//go:build !linux

package vfs

import (
	"io/fs"
	"os"
	"time"
)

func (o *osFS) Lstat(name string) (fs.FileInfo, error) { return o.root.Lstat(name) }

func (o *osFS) openExisting(name string, flag int) (*os.File, error) {
	return o.openInRoot(name, flag, false)
}

func withoutRoot(f *os.File) (*os.File, error) { return f, nil }

func number(fs.FileInfo) (fileNumber, bool) { return fileNumber{}, false }

// Yield does something on Linux only, see there.
func Yield() {}

func rest(d time.Duration) { time.Sleep(d) }
