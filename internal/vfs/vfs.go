// Package vfs separates the engine from the file system. Its only purpose is to inject faults and to simulate power
// cuts without an outside harness. All reads and writes of the engine go through an [FS]. [OS] is the real file system;
// package crashfs simulates one that loses unsynced data.
//
// Names are slash-separated and relative to the FS's folder. An FS never follows a name out of its folder, not even
// through a symbolic link. New files are 0600 and new folders 0700 whatever the umask.
package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"time"
)

// FS is one folder and its content. It refers to the folder itself, not to its path, and keeps working when the folder
// is renamed.
type FS interface {
	// OpenFile opens a file with the flags of package os. A file it creates is not durable before File.Sync, nor its
	// name before SyncDir.
	OpenFile(name string, flag int) (File, error)
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir yields the entries of a folder in no particular order, in bounded memory. An entry has name and type; Lstat
	// has the rest.
	ReadDir(name string) iter.Seq2[fs.DirEntry, error]
	Mkdir(name string) error
	Rename(from, to string) error
	// RenameNew is Rename that fails with fs.ErrExist if to exists.
	RenameNew(from, to string) error
	Remove(name string) error
	// Replace sets the content of name: temporary file, fsync, rename. A crash leaves the old file or the new one
	// intact. The new name is durable only after SyncDir.
	Replace(name string, data []byte) error
	// SyncDir makes the entries of a folder durable: creations, renames and removals.
	SyncDir(name string) error
	// SyncAll makes everything written below this folder durable, names included. It may also flush other programs'
	// files on the same file system. It returns errors.ErrUnsupported if the platform has no such call. The system
	// reports a failed write to one call of SyncAll only, whichever file failed. It does not report failures from
	// before this FS was opened that it reported to another program.
	SyncAll() error
	// SyncFailures counts failed SyncAll calls. Callers that share an FS thus detect failures reported to another.
	SyncFailures() uint64
	// Sub opens a folder below this one.
	Sub(name string) (FS, error)
	// Lock returns a lock on the file name. The first acquisition creates the file; nothing removes it. The lock
	// excludes other processes and other locks of this process alike.
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
	// Sync makes content and attributes durable. A failed Sync must not be retried: the kernel may have dropped the
	// data and report success the next time.
	Sync() error
	// Datasync is Sync without the attributes that reading the data back does not need.
	Datasync() error
}

// Lock is an advisory lock. The Lock value holds it, not a goroutine.
type Lock interface {
	// Acquire waits for the exclusive lock until ctx ends; the error is then ctx.Err(). The system may still grant the
	// lock to a waiter that gave up, which gives it back at once.
	Acquire(ctx context.Context) error
	// TryAcquire takes the exclusive lock if it is free. It may fail at the moment in which a waiter that gave up gives
	// the lock back.
	TryAcquire() (bool, error)
	// AcquireShared waits for the lock in shared mode.
	AcquireShared(ctx context.Context) error
	Release() error
	// Tenure is for the holder of the lock. The number stays the same while goroutines that share this Lock pass it on
	// without releasing it. Once the lock was free, Tenure returns another number, never 0.
	Tenure() uint64
	// Close releases the lock and closes its open files.
	Close() error
}

// Notifier is an FS through which every change of its files passes, so that nobody has to look for them.
type Notifier interface {
	// Notify calls f with the name of each file and folder that changed, once it has, until stop has returned. f must not
	// call the FS.
	Notify(f func(name string)) (stop func())
}

// HasViews reports whether people and other programs see the files of an FS, so that it is worth making files for them. An
// FS that keeps files elsewhere has a method HasViews that returns false.
func HasViews(fsys FS) bool {
	f, ok := fsys.(interface{ HasViews() bool })
	return !ok || f.HasViews()
}

// TypeName names a kind of file.
func TypeName(t fs.FileMode) string {
	switch {
	case t.IsRegular():
		return "a file"
	case t.IsDir():
		return "a folder"
	case t&fs.ModeSymlink != 0:
		return "a link, which is not followed"
	}
	return "neither a file nor a folder"
}

// ErrTooLarge is wrapped by errors about a file larger than its kind may be.
var ErrTooLarge = errors.New("file is too large")

// ErrNotRegular is wrapped by errors about a folder, link or device in the place of a file.
var ErrNotRegular = errors.New("not a regular file")

// ErrNotFolder is wrapped by errors about a file, link or device in the place of a folder.
var ErrNotFolder = errors.New("not a folder")

// fileNumber identifies a file on one machine.
type fileNumber struct{ dev, ino uint64 }
