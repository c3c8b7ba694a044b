package vfs

import "io/fs"

// IsAt reports whether a path leads to a file or folder that is open. It may follow links in the path: the answer only
// says whether another one has to be opened.
//
// It does not ask for the times of the file. Since Linux 6.13, a file whose time somebody asked for gets an exact time
// with its next write. On ext4 the fdatasync of that write then takes a third longer: measured with 6.18.
func IsAt(fsys FS, path string, opened fs.FileInfo) (bool, error) {
	now, err := statNumber(fsys, path)
	return err == nil && SameFile(now, opened), err
}

// numberFS is an FS with a call for the number of a file alone. It may follow links in the path.
type numberFS interface {
	statNumber(path string) (fs.FileInfo, error)
}

func statNumber(fsys FS, path string) (fs.FileInfo, error) {
	if s, ok := fsys.(numberFS); ok {
		return s.statNumber(path)
	}
	return fsys.Lstat(path)
}
