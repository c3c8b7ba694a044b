package vfs

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (o *osFS) Lstat(name string) (fs.FileInfo, error) {
	if !plain(name) {
		return o.lstatInRoot(name)
	}
	return o.statPath(name)
}

// statPath is Lstat with one call. Only the last element of the path is not followed.
func (o *osFS) statPath(name string) (fs.FileInfo, error) {
	info := &statInfo{name: name}
	err := o.at("statat", name, func(dir int) error {
		return again(func() error { return unix.Fstatat(dir, name, &info.st, unix.AT_SYMLINK_NOFOLLOW) })
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// lstatIn opens nothing. The path leads through no link: the folder is examined first.
func (o *osFS) lstatIn(folder string, names []string) (infos []fs.FileInfo, err error) {
	if folder == "." {
		err = o.at("statat", folder, func(dir int) error {
			infos, err = lstatAll(dir, names)
			return err
		})
		return infos, err
	}
	if !plain(folder) {
		return lstatIn(o, folder, names)
	}
	infos = make([]fs.FileInfo, len(names))
	err = o.at("statat", folder, func(dir int) error {
		stats := make([]statInfo, 1+len(names))
		stat := func(info *statInfo, path string) error {
			info.name = path[strings.LastIndexByte(path, '/')+1:]
			return again(func() error { return unix.Fstatat(dir, path, &info.st, unix.AT_SYMLINK_NOFOLLOW) })
		}
		it := &stats[len(names)]
		err := stat(it, folder)
		if err == nil && !it.IsDir() {
			err = unix.ENOTDIR
		}
		if err != nil {
			return err
		}
		for i, name := range names {
			info := it
			if name != "." {
				info = &stats[i]
				err = stat(info, folder+"/"+name)
			}
			switch {
			case err == nil:
				infos[i] = info
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		return nil
	})
	return infos, err
}

func lstatAll(dir int, names []string) ([]fs.FileInfo, error) {
	infos, stats := make([]fs.FileInfo, len(names)), make([]statInfo, len(names))
	for i, name := range names {
		info := &stats[i]
		info.name = name
		switch err := again(func() error { return unix.Fstatat(dir, name, &info.st, unix.AT_SYMLINK_NOFOLLOW) }); {
		case err == nil:
			infos[i] = info
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return infos, nil
}

func (f osFile) size() (int64, error) {
	var st unix.Statx_t
	err := f.control("statx", func(fd int) error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_SIZE, &st)
	})
	if errors.Is(err, unix.ENOSYS) {
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return int64(st.Size), err
}

// statInfo is the result of fstatat.
type statInfo struct {
	name string
	st   unix.Stat_t
}

func (i *statInfo) Name() string       { return i.name }
func (i *statInfo) Size() int64        { return i.st.Size }
func (i *statInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i *statInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *statInfo) Sys() any           { return &i.st }
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
	case *unix.Stat_t:
		return fileNumber{uint64(st.Dev), st.Ino}, true //nolint:unconvert // 32 bits on some systems
	case *syscall.Stat_t:
		return fileNumber{uint64(st.Dev), st.Ino}, true //nolint:unconvert // 32 bits on some systems
	}
	return fileNumber{}, false
}
