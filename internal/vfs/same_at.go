package vfs

import "io/fs"

// IsAt reports whether a path leads to a file or folder that is open. It may follow links in the path: the answer only
// says whether another one has to be opened.
//
// It does not ask for the times of the file. Since Linux 6.13, a file whose time somebody asked for gets an exact time
// with its next write. On ext4 the fdatasync of that write then takes a third longer: measured with 6.18.
func IsAt(fsys FS, path string, opened fs.FileInfo) (bool, error) {
	stat := fsys.Lstat
	if s, ok := fsys.(interface {
		statNumber(path string) (fs.FileInfo, error)
	}); ok {
		stat = s.statNumber
	}
	now, err := stat(path)
	return err == nil && SameFile(now, opened), err
}
