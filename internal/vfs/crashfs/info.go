package crashfs

import (
	"io/fs"
	"path"
	"syscall"
	"time"
)

// Identity is the FileInfo.Sys of a crashfs file. A file keeps it through renames and crashes.
type Identity struct {
	dev   *device
	ino   uint64
	links int
}

// SameFile implements the comparison of [vfs.SameFile].
func (i Identity) SameFile(other any) bool {
	o, ok := other.(Identity)
	return ok && i.dev == o.dev && i.ino == o.ino
}

// Ino returns the inode number. An instance never reuses it.
func (i Identity) Ino() uint64 { return i.ino }

// Links returns the number of names, 0 once the file or folder is removed. A folder has one.
func (i Identity) Links() int { return i.links }

type fileInfo struct {
	name  string
	size  int64
	dir   bool
	mtime time.Time
	id    Identity
}

func (d *disk) info(n *inode, name string) fs.FileInfo {
	return fileInfo{path.Base(name), n.now.size, n.dir, n.mtime, Identity{d.dev, n.ino, n.links}}
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return i.mtime }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return i.id }

func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

// dirEntry is an entry of a folder. Its Info describes the current file, as with package os.
type dirEntry struct {
	d      *disk
	parent *inode
	name   string
	dir    bool
}

func (e dirEntry) Name() string { return e.name }
func (e dirEntry) IsDir() bool  { return e.dir }

func (e dirEntry) Type() fs.FileMode {
	if e.dir {
		return fs.ModeDir
	}
	return 0
}

func (e dirEntry) Info() (info fs.FileInfo, err error) {
	err = e.d.run(func() Op {
		return Op{Kind: KindStat, Path: join(e.d.pathOf(e.parent), e.name)}
	}, func(_ Op, fault error) error {
		n := e.parent.entries[e.name]
		switch {
		case fault != nil:
			return fault
		case n == nil:
			return syscall.ENOENT
		}
		info = e.d.info(n, e.name)
		return nil
	})
	return info, pathError("lstat", e.name, err)
}
