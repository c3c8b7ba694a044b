package vfs

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// Staged is a file that has its content and not its name yet.
type Staged interface {
	// Create gives it the name. It fails with fs.ErrExist when the name is taken. Whatever it returns, the Staged is
	// used up.
	Create() error
	// Discard removes it.
	Discard()
}

// StageFile writes a new file without giving it its name: under a temporary one, or, where the system can do that, under
// none, so that nothing is left behind by a process that is killed. Nothing is synced.
func StageFile(fsys FS, name string, data []byte, at time.Time) (Staged, error) {
	if s, ok := fsys.(interface {
		stageFile(name string, data []byte, at time.Time) (Staged, error)
	}); ok {
		return s.stageFile(name, data, at)
	}
	return stageFile(fsys, name, data, at)
}

func stageFile(fsys FS, name string, data []byte, at time.Time) (Staged, error) {
	s := &named{fsys, TemporaryName(name), name}
	if err := CreateFile(fsys, s.tmp, data, at); err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

// TemporaryName is a name beside name that nobody else uses. It begins with a dot.
func TemporaryName(name string) string {
	return "." + name + "." + strconv.FormatUint(rand.Uint64(), 16) + ".tmp"
}

// named is a staged file under a temporary name.
type named struct {
	fs        FS
	tmp, name string
}

func (s *named) Create() error {
	err := s.fs.RenameNew(s.tmp, s.name)
	if err != nil {
		s.Discard()
	}
	return err
}

func (s *named) Discard() { _ = s.fs.Remove(s.tmp) }
