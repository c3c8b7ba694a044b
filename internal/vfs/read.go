package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Exists reports whether there is anything at a name. It follows no link. Unless the file system says that there is nothing, a
// failed look is an error: nobody may take it for absence.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Lstat(name)
	return err == nil, present(err)
}

// IsFolder is [Exists] for a folder.
func IsFolder(fsys FS, name string) (bool, error) {
	info, err := fsys.Lstat(name)
	return err == nil && info.IsDir(), present(err)
}

// present is the error of a look that did not find out whether something is there.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // or what should lead there is no folder
		return nil
	}
	return err
}

// SubStat is [FS.Sub] that also returns the Lstat of the folder. For anything but a folder, the error wraps
// [ErrNotFolder].
func SubStat(fsys FS, name string) (FS, fs.FileInfo, error) {
	if s, ok := fsys.(interface {
		subStat(name string) (FS, fs.FileInfo, error)
	}); ok {
		return s.subStat(name)
	}
	info, err := fsys.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	if err != nil {
		return nil, nil, err
	}
	sub, err := fsys.Sub(name)
	return sub, info, err
}

// ReadOpened returns the content of an open file whose Stat is info.
func ReadOpened(f File, info fs.FileInfo, name string, limit int64) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	if info.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	if err := unbroken(f, info); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	b := make([]byte, info.Size())
	n, err := f.ReadAt(b, 0)
	if err != nil && !(errors.Is(err, io.EOF)) {
		return nil, err
	}
	return b[:n], nil
}

// WriteNew makes a new file with this content. It syncs nothing.
func WriteNew(fsys FS, name string, data []byte) error {
	return writeNew(fsys, name, data, func(File) error { return nil })
}

// WriteSynced makes a new file with this content and syncs it. Its name is durable after SyncDir.
func WriteSynced(fsys FS, name string, data []byte) error {
	return writeNew(fsys, name, data, File.Sync)
}

// writeNew makes a new file with this content, and calls then before it closes the file.
func writeNew(fsys FS, name string, data []byte, then func(File) error) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = then(f)
	}
	return errors.Join(err, f.Close())
}

// RemoveAll removes a file, or a folder with its content. It follows no link. A missing file is not an error.
func RemoveAll(fsys FS, name string) error {
	info, err := fsys.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		var inside []string
		for e, err := range fsys.ReadDir(name) {
			if err != nil {
				return err
			}
			inside = append(inside, name+"/"+e.Name())
		}
		for _, n := range inside {
			if err := RemoveAll(fsys, n); err != nil {
				return err
			}
		}
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncFile syncs a file by name. A missing file is not an error.
func SyncFile(fsys FS, name string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// TreeSize adds up the sizes of the files below a folder. It omits unreadable items.
func TreeSize(fsys FS, name string) (size int64) {
	for e, err := range fsys.ReadDir(name) {
		if err != nil {
			return size
		}
		path := name + "/" + e.Name()
		if e.IsDir() {
			size += TreeSize(fsys, path)
		} else if info, err := fsys.Lstat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}
