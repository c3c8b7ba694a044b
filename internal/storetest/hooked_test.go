package storetest_test

import (
	"io/fs"
	"iter"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// hookedFS is a file system that tells before a file is opened or removed, or a folder listed.
type hookedFS struct {
	vfs.FS
	open, remove func(name string)
	look         func(name string) // before an Lstat; may be nil
	list         func(name string) // before a ReadDir; may be nil
}

func (h *hookedFS) Lstat(name string) (fs.FileInfo, error) {
	if h.look != nil {
		h.look(name)
	}
	return h.FS.Lstat(name)
}

func (h *hookedFS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	if h.list != nil {
		h.list(name)
	}
	return h.FS.ReadDir(name)
}

func (h *hookedFS) OpenFile(name string, flag int) (vfs.File, error) {
	h.open(name)
	return h.FS.OpenFile(name, flag)
}

func (h *hookedFS) Remove(name string) error {
	h.remove(name)
	return h.FS.Remove(name)
}

func (h *hookedFS) Sub(name string) (vfs.FS, error) {
	sub, err := h.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return &hookedFS{sub, h.open, h.remove, h.look, h.list}, nil
}
