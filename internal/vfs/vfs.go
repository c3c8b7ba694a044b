// Package vfs is the seam between the engine and the file system. It exists for one reason: to inject
// faults and to simulate power cuts without an outside harness. Everything the engine reads or writes
// goes through an [FS]; [OS] is the real one, package crashfs the one that forgets.
//
// Names are slash-separated and relative to the FS's folder; none may lead out of it, not even through
// a symbolic link. New files are 0600 and new folders 0700 whatever the umask.
package vfs

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"
)

// FS is one folder and what lies below it. It refers to the folder itself, not to its path: it goes on
// working when the folder is renamed.
type FS interface {
	// OpenFile opens a file with the flags of package os. A file it creates is not durable, nor is its
	// name, before File.Sync and SyncDir.
	OpenFile(name string, flag int) (File, error)
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir yields the entries of a folder in no particular order, in bounded memory.
	ReadDir(name string) iter.Seq2[fs.DirEntry, error]
	Mkdir(name string) error
	Rename(from, to string) error
	// RenameNew is Rename that fails with fs.ErrExist when to is there already.
	RenameNew(from, to string) error
	Remove(name string) error
	// Replace makes name hold data: temporary file, fsync, rename. A crash leaves the old file or the
	// new one whole. The new name is durable only after SyncDir.
	Replace(name string, data []byte) error
	// SyncDir makes the entries of a folder durable: creations, renames and removals.
	SyncDir(name string) error
	// SyncAll makes everything written below this folder durable, names included. It may flush other
	// programs' files on the same file system too. It returns errors.ErrUnsupported where the platform
	// has no such call. The system reports a failed write to one call of SyncAll only, whichever file it was about. It does not report failures from
	// before this FS was opened that another program was told of.
	SyncAll() error
	// SyncFailures counts the failed calls of SyncAll. Callers that share an FS use it to learn of failures that were reported to another caller.
	SyncFailures() uint64
	// Sub opens a folder below this one.
	Sub(name string) (FS, error)
	// Lock returns a lock on the file name, which is created when it is first taken and never removed.
	// It excludes other processes and other locks of this process alike.
	Lock(name string) Lock
	Close() error
}

// File is an open file.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// SetModTime sets the modification time.
	SetModTime(t time.Time) error
	// Sync makes content and attributes durable. A failed Sync must not be retried: the kernel may have
	// dropped the data and report success the next time.
	Sync() error
	// Datasync is Sync without attributes that reading the data back does not need.
	Datasync() error
}

// Lock is an advisory lock. It is held by the Lock value, not by a goroutine.
type Lock interface {
	// Acquire waits for the exclusive lock until ctx ends; the error is then ctx.Err().
	Acquire(ctx context.Context) error
	// TryAcquire takes the exclusive lock if it is free.
	TryAcquire() (bool, error)
	// AcquireShared waits for the lock in shared mode.
	AcquireShared(ctx context.Context) error
	Release() error
	// Tenure is for who holds the lock: a number that stays the same while the lock is passed on between goroutines that
	// share this Lock, without being free in between, and is another one, never 0, afterwards.
	Tenure() uint64
	// Close releases the lock and what it holds open.
	Close() error
}

// SameFile reports whether two results of Lstat or Stat describe one file.
func SameFile(a, b fs.FileInfo) bool {
	if x, ok := a.Sys().(interface{ SameFile(any) bool }); ok {
		return x.SameFile(b.Sys())
	}
	if same, ok := sameNumber(a, b); ok {
		return same
	}
	return os.SameFile(a, b)
}
