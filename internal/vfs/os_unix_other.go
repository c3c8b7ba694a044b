//go:build unix && !linux

package vfs

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const largeFiles = 0 // every program can open them

// Datasync is Sync, which on darwin is F_FULLFSYNC.
func (f osFile) Datasync() error { return f.Sync() }

func syncDir(f *os.File) error { return f.Sync() }

func (f osFile) SetModTime(t time.Time) error {
	tv := unix.NsecToTimeval(t.UnixNano())
	return unix.Futimes(int(f.Fd()), []unix.Timeval{tv, tv})
}

func syncAll(*os.File) error { return errors.ErrUnsupported }

func renameNew(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }
