package vfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// IO returns the files of an FS, to be read by what knows package io/fs alone.
func IO(fsys FS) fs.FS { return readable{fsys} }

type readable struct{ fsys FS }

var (
	_ fs.ReadDirFS = readable{}
	_ fs.StatFS    = readable{}
)

func (r readable) Open(name string) (fs.File, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	f, err := r.fsys.OpenFile(name, os.O_RDONLY)
	if err != nil || !info.IsDir() {
		return f, err
	}
	return &readableFolder{File: f, list: func() ([]fs.DirEntry, error) { return r.ReadDir(name) }}, nil
}

func (r readable) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return r.fsys.Lstat(name)
}

func (r readable) ReadDir(name string) (all []fs.DirEntry, err error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	for e, err := range r.fsys.ReadDir(name) {
		if err != nil {
			return nil, err
		}
		info, err := r.fsys.Lstat(path.Join(name, e.Name())) // an entry has no more than name and type
		if err == nil {
			all = append(all, fs.FileInfoToDirEntry(info))
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// readableFolder is an open folder. Its first ReadDir reads all entries.
type readableFolder struct {
	fs.File
	list func() ([]fs.DirEntry, error)
	rest []fs.DirEntry
}

func (f *readableFolder) ReadDir(n int) (entries []fs.DirEntry, err error) {
	if f.list != nil {
		if f.rest, err = f.list(); err != nil {
			return nil, err
		}
		f.list = nil
	}
	if n <= 0 || n > len(f.rest) {
		if n > 0 && len(f.rest) == 0 {
			return nil, io.EOF
		}
		n = len(f.rest)
	}
	entries, f.rest = f.rest[:n], f.rest[n:]
	return entries, nil
}
