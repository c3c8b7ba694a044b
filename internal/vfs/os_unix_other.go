//go:build unix && !linux

package vfs

import (
	"errors"
	"os"
	"time"
)

// Datasync is Sync, which on darwin is F_FULLFSYNC.
func (f osFile) Datasync() error { return f.Sync() }

func (f osFile) SetModTime(t time.Time) error { return os.Chtimes(f.Name(), t, t) }

func syncAll(*os.File) error { return errors.ErrUnsupported }

func renameNew(*os.Root, string, string) error { return errors.ErrUnsupported }
