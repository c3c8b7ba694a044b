package vfs

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
)

// Below returns a folder of fsys that may not be there yet: the first file that is created in it creates it, durably.
// Without it, files in it do not exist. Closing it does nothing.
func Below(fsys FS, folder string) FS { return below{fsys, folder} }

type below struct {
	fsys   FS
	folder string
}

func (b below) at(name string) string { return path.Join(b.folder, name) }

func (b below) OpenFile(name string, flag int) (File, error) {
	f, err := b.fsys.OpenFile(b.at(name), flag)
	if flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := b.fsys.Mkdir(b.folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := b.fsys.SyncDir("."); err != nil {
		return nil, err
	}
	return b.fsys.OpenFile(b.at(name), flag)
}

func (b below) Lstat(name string) (fs.FileInfo, error)            { return b.fsys.Lstat(b.at(name)) }
func (b below) ReadDir(name string) iter.Seq2[fs.DirEntry, error] { return b.fsys.ReadDir(b.at(name)) }
func (b below) Mkdir(name string) error                           { return b.fsys.Mkdir(b.at(name)) }
func (b below) Rename(from, to string) error                      { return b.fsys.Rename(b.at(from), b.at(to)) }
func (b below) RenameNew(from, to string) error                   { return b.fsys.RenameNew(b.at(from), b.at(to)) }
func (b below) Remove(name string) error                          { return b.fsys.Remove(b.at(name)) }
func (b below) Replace(name string, data []byte) error            { return b.fsys.Replace(b.at(name), data) }
func (b below) SyncDir(name string) error                         { return b.fsys.SyncDir(b.at(name)) }
func (b below) SyncAll() error                                    { return b.fsys.SyncAll() }
func (b below) SyncFailures() uint64                              { return b.fsys.SyncFailures() }
func (b below) Sub(name string) (FS, error)                       { return b.fsys.Sub(b.at(name)) }
func (b below) Lock(name string) Lock                             { return b.fsys.Lock(b.at(name)) }
func (b below) HasViews() bool                                    { return HasViews(b.fsys) }
func (b below) Close() error                                      { return nil }
