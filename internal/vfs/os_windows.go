package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

const (
	openFlags   = 0
	folderFlags = 0
)

// restrict does nothing: on Windows the folder's access list decides.
func restrict(*os.File, fs.FileMode) error { return nil }

// replaceIn replaces renameio, which does not build on Windows.
func replaceIn(dir *os.Root, name string, data []byte) error {
	tmp := fmt.Sprintf(".%s%d", name, rand.Uint64())
	f, err := dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		_ = dir.Remove(tmp)
	}
	return err
}

// syncDir does nothing: Windows has no flush for folders, so names are as durable as the file system makes them. The
// promise against power cuts does not cover Windows.
func syncDir(*os.File) error { return nil }

func (f osFile) SetModTime(t time.Time) error {
	ft := syscall.NsecToFiletime(t.UnixNano())
	return syscall.SetFileTime(syscall.Handle(f.Fd()), nil, nil, &ft)
}

func (f osFile) Datasync() error { return f.Sync() }

func syncAll(*os.File) error { return errors.ErrUnsupported }

func renameNew(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }
