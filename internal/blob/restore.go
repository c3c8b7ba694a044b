package blob

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// ParseFile returns the sum of the blob with this file name, without folders.
func ParseFile(name string) (Sum, bool) {
	sum, err := ParseSum(strings.TrimSuffix(name, Suffix))
	return sum, err == nil && name == sum.String()+Suffix
}

// Return moves the file of a blob from elsewhere in the store's folder back to its place, durably, and sets its time to
// now. If a blob is in that place already, both stay, and moved is false.
//
// Crash order: the folders are durable before the rename, the rename when Return returns. The blob is in either place.
func (s *Store) Return(path string, sum Sum) (moved bool, err error) {
	info, err := s.fs.Lstat(path)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, &fs.PathError{Op: "return", Path: path, Err: vfs.ErrNotRegular}
	}
	if err := s.makeDurableFolders(sum); err != nil {
		return false, err
	}
	err = s.fs.RenameNew(path, Path(sum))
	if moved = err == nil; moved {
		err = s.fs.SyncDir(leaf(sum))
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return moved, errors.Join(err, s.Touch(sum))
}
