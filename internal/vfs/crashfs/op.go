package crashfs

import (
	"errors"
	"fmt"
	"slices"
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

// Ops returns the numbered operations so far.
func (f *FS) Ops() []Op {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return slices.Clone(f.d.log)
}

// CutAt cuts the power at the k-th operation, counted from New or Crash. That operation takes effect as far as a crash
// allows, and returns [ErrPowerCut]. A k that has passed cuts at once; 0 cancels the cut.
func (f *FS) CutAt(k int) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.cutAt = k
	if k > 0 && k <= len(f.d.log) {
		f.d.powerOff()
	}
}

// Cut cuts the power now.
func (f *FS) Cut() {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.powerOff()
}

// PowerCut reports whether the power has failed.
func (f *FS) PowerCut() bool {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.dead
}

// Fail sets a hook that runs before every call takes effect. If it returns an error, the call fails with that error and
// without effect, except for [ShortWrite] and failed syncs. The hook may block, call into the FS (which runs the hook
// again), or take a Crash, which sees the state before the operation. nil removes the hook.
func (f *FS) Fail(hook func(Op) error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.hook = hook
}

// FailAt makes the k-th operation fail with err. It replaces the hook.
func (f *FS) FailAt(k int, err error) {
	f.Fail(func(o Op) error {
		if o.Index == k {
			return err
		}
		return nil
	})
}
