package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// whole is an optional interface for operations in few system calls and without an open file. The engine makes and
// reads message files by the thousand, for which the overhead of an [os.File] exceeds the cost of the file itself.
type whole interface {
	createFile(name string, data []byte, at time.Time) error
	loadFile(name string, size int64) ([]byte, error)
	readFile(name string, limit int64) ([]byte, fs.FileInfo, error)
}

// CreateFile makes a new file with this content and modification time. It syncs nothing. It fails with fs.ErrExist if
// the name is taken. After another failure it may leave a part of the file.
func CreateFile(fsys FS, name string, data []byte, at time.Time) error {
	if w, ok := fsys.(whole); ok {
		return w.createFile(name, data, at)
	}
	return createFile(fsys, name, data, at)
}

func createFile(fsys FS, name string, data []byte, at time.Time) error {
	return writeNew(fsys, name, data, func(f File) error { return f.SetModTime(at) })
}

// LoadFile returns the content of a file of the expected size: all of it if the size is right, else an error or up to
// size+1 bytes. The caller must verify the content by a checksum.
func LoadFile(fsys FS, name string, size int64) ([]byte, error) {
	if w, ok := fsys.(whole); ok {
		return w.loadFile(name, size)
	}
	return loadFile(fsys, name, size)
}

// LoadFiles is LoadFile for files of the folder itself, numbered from 0 to n-1: file returns name and expected size,
// and loaded receives the content. loaded is not called for a file that cannot be read; LoadFile says why.
func LoadFiles(fsys FS, n int, file func(i int) (name string, size int64), loaded func(i int, b []byte)) {
	if o, ok := fsys.(interface {
		loadFiles(n int, file func(i int) (name string, size int64), loaded func(i int, b []byte))
	}); ok {
		o.loadFiles(n, file, loaded)
		return
	}
	for i := range n {
		name, size := file(i)
		if b, err := loadFile(fsys, name, size); err == nil {
			loaded(i, b)
		}
	}
}

func loadFile(fsys FS, name string, size int64) ([]byte, error) {
	if size < 0 || size > trusted {
		b, err := ReadFile(fsys, name, max(size, 0))
		if errors.Is(err, ErrTooLarge) {
			return nil, nil // the content is another one, which is not an error
		}
		return b, err
	}
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, size+1)
	n, err := f.ReadAt(b, 0)
	if n == 0 && err != nil && size > 0 {
		return nil, err
	}
	return b[:n], nil
}

// ReadFile returns the content of a file of at most limit bytes. For a larger file the error wraps [ErrTooLarge]. The
// file's real size bounds the allocation.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	b, _, err := ReadStat(fsys, name, limit)
	return b, err
}

// ReadStat is ReadFile that also returns the result of Stat.
func ReadStat(fsys FS, name string, limit int64) ([]byte, fs.FileInfo, error) {
	if w, ok := fsys.(whole); ok {
		return w.readFile(name, limit)
	}
	return readFile(fsys, name, limit)
}

func readFile(fsys FS, name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	b, err := ReadOpened(f, info, name, limit)
	return b, info, err
}

// ReadRegular is ReadFile that follows no symbolic link to the file.
func ReadRegular(fsys FS, name string, limit int64) ([]byte, error) {
	if r, ok := fsys.(interface {
		readRegular(name string, limit int64) ([]byte, error)
	}); ok {
		return r.readRegular(name, limit)
	}
	return readRegular(fsys, name, limit)
}

func readRegular(fsys FS, name string, limit int64) ([]byte, error) {
	info, err := fsys.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	return ReadFile(fsys, name, limit)
}

// LstatIn is Lstat of some files in a folder, and of the folder itself under the name ".". The folder "." is that of
// the FS. nil stands for a missing file.
func LstatIn(fsys FS, folder string, names ...string) ([]fs.FileInfo, error) {
	if l, ok := fsys.(interface {
		lstatIn(folder string, names []string) ([]fs.FileInfo, error)
	}); ok {
		return l.lstatIn(folder, names)
	}
	return lstatIn(fsys, folder, names)
}

func lstatIn(fsys FS, folder string, names []string) ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(names))
	for i, name := range names {
		info, err := fsys.Lstat(path.Join(folder, name))
		if err == nil {
			infos[i] = info
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return infos, nil
}
