package vfs

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// statInfo is the result of fstatat.
type statInfo struct {
	name string
	st   unix.Stat_t
}

func (i *statInfo) Name() string { return i.name }

func (i *statInfo) Size() int64 { return i.st.Size }

func (i *statInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }

func (i *statInfo) IsDir() bool { return i.Mode().IsDir() }

func (i *statInfo) Sys() any { return &i.st }

func (i *statInfo) Mode() fs.FileMode {
	m := fs.FileMode(i.st.Mode & 0o777)
	switch i.st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	default:
		m |= fs.ModeIrregular
	}
	return m
}

func number(info fs.FileInfo) (fileNumber, bool) {
	switch st := info.Sys().(type) {
	case fileNumber:
		return st, true
	case *unix.Stat_t:
		return fileNumber{uint64(st.Dev), st.Ino}, true //nolint:unconvert // 32 bits on some systems
	case *syscall.Stat_t:
		return fileNumber{uint64(st.Dev), st.Ino}, true //nolint:unconvert // 32 bits on some systems
	}
	return fileNumber{}, false
}
