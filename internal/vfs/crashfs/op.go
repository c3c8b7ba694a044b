package crashfs

import (
	"errors"
	"fmt"
)

// ErrPowerCut is returned by the operation at which the power fails and by every call after it.
var ErrPowerCut = errors.New("power cut")

// Kind names the effect of an operation.
type Kind string

// The numbered operations change or sync something.
const (
	KindCreate     Kind = "create" // OpenFile of a missing file
	KindWrite      Kind = "write"
	KindTruncate   Kind = "truncate" // also OpenFile with O_TRUNC
	KindSetModTime Kind = "setmodtime"
	KindSync       Kind = "sync"
	KindDatasync   Kind = "datasync"
	KindMkdir      Kind = "mkdir"
	KindRename     Kind = "rename"
	KindRemove     Kind = "remove"
	KindSyncDir    Kind = "syncdir"
	KindSyncAll    Kind = "syncall"
)

// The other operations have no number. A hook sees them and may make them fail.
const (
	KindOpen    Kind = "open" // OpenFile of an existing file, Sub
	KindRead    Kind = "read"
	KindStat    Kind = "stat" // Lstat, File.Stat
	KindReadDir Kind = "readdir"
	KindLock    Kind = "lock"
	KindClose   Kind = "close"
)

func (k Kind) numbered() bool {
	switch k {
	case KindOpen, KindRead, KindStat, KindReadDir, KindLock, KindClose:
		return false
	}
	return true
}

// Op is one operation.
type Op struct {
	Index int // from 1; 0 for kinds without a number
	Kind  Kind
	Path  string // from the root of the instance, "." the root itself
	To    string // the new path of a rename
	Off   int64  // of a write or read: its offset
	Size  int64  // of a write or read: its length; of a truncate: the new size
	Err   error  // the result; only in [FS.Ops]
}

func (o Op) String() string {
	s := fmt.Sprintf("%d %s %s", o.Index, o.Kind, o.Path)
	switch o.Kind {
	case KindRename:
		s += " -> " + o.To
	case KindWrite, KindRead:
		s += fmt.Sprintf(" %d+%d", o.Off, o.Size)
	case KindTruncate:
		s += fmt.Sprintf(" %d", o.Size)
	}
	if o.Err != nil {
		s += ": " + o.Err.Error()
	}
	return s
}

// ShortWrite is the error a hook returns to let the first N bytes of a write through before Err. The caller of Write
// gets N and Err.
type ShortWrite struct {
	N   int
	Err error
}

func (s *ShortWrite) Error() string { return fmt.Sprintf("short write of %d bytes: %v", s.N, s.Err) }
func (s *ShortWrite) Unwrap() error { return s.Err }
