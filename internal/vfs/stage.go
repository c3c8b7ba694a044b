package vfs

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// Staged is a file with content and without its name.
type Staged interface {
	// Create names the file. It fails with fs.ErrExist if the name is taken. Whatever it returns, the Staged is used
	// up.
	Create() error
	// Discard removes the file.
	Discard()
}

// StageFile writes a new file without its name: under a temporary name or, if the system supports it, under none. An
// unnamed file leaves nothing behind if the process is killed. StageFile syncs nothing.
func StageFile(fsys FS, name string, data []byte, at time.Time) (Staged, error) {
	if s, ok := fsys.(interface {
		stageFile(name string, data []byte, at time.Time) (Staged, error)
	}); ok {
		return s.stageFile(name, data, at)
	}
	return stageFile(fsys, name, data, at)
}

func stageFile(fsys FS, name string, data []byte, at time.Time) (Staged, error) {
	s := &namedFile{fsys, TemporaryName(name), name}
	if err := CreateFile(fsys, s.tmp, data, at); err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

// TemporaryName returns a unique name beside name. It begins with a dot.
func TemporaryName(name string) string {
	return "." + name + "." + strconv.FormatUint(rand.Uint64(), 16) + ".tmp"
}

// named is a staged file with a temporary name.
type namedFile struct {
	fs        FS
	tmp, name string
}

func (s *namedFile) Create() error {
	err := s.fs.RenameNew(s.tmp, s.name)
	if err != nil {
		s.Discard()
	}
	return err
}

func (s *namedFile) Discard() { _ = s.fs.Remove(s.tmp) }
