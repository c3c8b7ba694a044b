package vfs

import "io/fs"

// IsAt reports whether a path leads to a file or folder that is open. It may follow links in the path: the answer only
// says whether another one has to be opened.
func IsAt(fsys FS, path string, opened fs.FileInfo) (bool, error) {
	stat := fsys.Lstat
	if s, ok := fsys.(interface {
		statPath(path string) (fs.FileInfo, error)
	}); ok {
		stat = s.statPath
	}
	now, err := stat(path)
	return err == nil && SameFile(now, opened), err
}
