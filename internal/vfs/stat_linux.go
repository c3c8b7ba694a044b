package vfs

import (
	"errors"
	"io/fs"
	"strings"

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

// statNumber is statPath for the number of the file alone.
func (o *osFS) statNumber(path string) (fs.FileInfo, error) {
	var st unix.Statx_t
	err := o.at("statat", path, func(dir int) error {
		return again(func() error { return unix.Statx(dir, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &st) })
	})
	if errors.Is(err, unix.ENOSYS) {
		return o.statPath(path)
	}
	if err != nil {
		return nil, err
	}
	return &numberInfo{statInfo{name: path}, fileNumber{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}}, nil
}

// numberInfo describes a file by its number alone.
type numberInfo struct {
	statInfo
	number fileNumber
}

func (i *numberInfo) Sys() any { return i.number }

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
	err := control(f.File, "statx", func(fd int) error {
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
