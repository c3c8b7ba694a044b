package vfs

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// CreateWhole makes a file that has its content from the start. It replaces no file: it fails with fs.ErrExist if the
// name is taken. It writes the content under a temporary name or, if the system supports it, under none: a process that
// is killed then leaves nothing behind. CreateWhole syncs nothing.
func CreateWhole(fsys FS, name string, data []byte, at time.Time) error {
	if c, ok := fsys.(interface {
		createWhole(name string, data []byte, at time.Time) error
	}); ok {
		return c.createWhole(name, data, at)
	}
	return createWhole(fsys, name, data, at)
}

func createWhole(fsys FS, name string, data []byte, at time.Time) error {
	tmp := TemporaryName(name)
	err := CreateFile(fsys, tmp, data, at)
	if err == nil {
		err = fsys.RenameNew(tmp, name)
	}
	if err != nil {
		_ = fsys.Remove(tmp)
	}
	return err
}

// TemporaryName returns a unique name beside name. It begins with a dot.
func TemporaryName(name string) string {
	return "." + name + "." + strconv.FormatUint(rand.Uint64(), 16) + ".tmp"
}
