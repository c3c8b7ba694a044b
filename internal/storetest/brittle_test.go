package storetest_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// faultPlan says which call of a store's file system fails: one call fails with EIO, or from one change on all calls do,
// as if the process were killed there. Syncs do nothing: a killed process loses no page of the cache.
type faultPlan struct {
	mu             sync.Mutex
	calls, changes int  // so far
	failAt, dieAt  int  // the call that fails, the change before which the process dies; 0 for none
	lasts          bool // all calls fail from failAt on
	failed, dead   bool // it happened
	looks, blindAt int  // at blobs so far; the one that fails, 0 for none
	where          string
	store          *ctxdir.Store // that meets the plan; nil before it is open
}

// died ends what would go on in SQLite, which does not meet the plan.
func (p *faultPlan) died() {
	_, _ = p.store.Derived("search", func(context.Context, []uuid.UUID) error { return syscall.EIO })
}

func (p *faultPlan) call(kind, name string, changes bool) error {
	dies, err := p.next(kind, name, changes)
	if dies {
		p.died()
	}
	return err
}

// next says how a call ends, and whether the process dies before it.
func (p *faultPlan) next(kind, name string, changes bool) (dies bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		return false, nil
	}
	if p.dead {
		return false, &fs.PathError{Op: kind, Path: name, Err: syscall.EIO}
	}
	p.calls++
	if changes {
		p.changes++
	}
	if kind == "lstat" && strings.HasPrefix(name, blob.Folder+"/") {
		p.looks++
	}
	switch {
	case p.calls == p.failAt || p.lasts && p.failed, p.looks == p.blindAt && p.looks > 0 && !p.failed:
		p.failed = true
	case changes && p.changes == p.dieAt:
		p.dead, dies = true, true
	default:
		return false, nil
	}
	p.where = kind + " " + name
	return dies, &fs.PathError{Op: kind, Path: name, Err: syscall.EIO}
}

type brittleFS struct {
	vfs.FS
	p *faultPlan
}

func (b brittleFS) OpenFile(name string, flag int) (vfs.File, error) {
	if err := b.p.call("open", name, flag&(os.O_CREATE|os.O_TRUNC) != 0); err != nil {
		return nil, err
	}
	f, err := b.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return &brittleFile{f, name, b.p}, nil
}

func (b brittleFS) Lstat(name string) (fs.FileInfo, error) {
	if err := b.p.call("lstat", name, false); err != nil {
		return nil, err
	}
	return b.FS.Lstat(name)
}

func (b brittleFS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	if err := b.p.call("readdir", name, false); err != nil {
		return func(yield func(fs.DirEntry, error) bool) { yield(nil, err) }
	}
	return b.FS.ReadDir(name)
}

func (b brittleFS) Mkdir(name string) error {
	return b.change("mkdir", name, func() error { return b.FS.Mkdir(name) })
}

func (b brittleFS) Rename(from, to string) error {
	return b.change("rename", from, func() error { return b.FS.Rename(from, to) })
}

func (b brittleFS) RenameNew(from, to string) error {
	return b.change("rename", from, func() error { return b.FS.RenameNew(from, to) })
}

func (b brittleFS) Remove(name string) error {
	return b.change("remove", name, func() error { return b.FS.Remove(name) })
}

// Replace is in steps, so that a process can die between them.
func (b brittleFS) Replace(name string, data []byte) error {
	tmp := path.Join(path.Dir(name), vfs.TemporaryName(path.Base(name)))
	f, err := b.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	_ = f.SetModTime(time.Now()) // a new file may get the number of an earlier version
	if err = errors.Join(err, f.Close()); err == nil {
		err = b.Rename(tmp, name)
	}
	if err != nil {
		_ = b.Remove(tmp)
	}
	return err
}

func (b brittleFS) SyncDir(name string) error { return b.call("syncdir", name) }
func (b brittleFS) SyncAll() error            { return b.call("syncall", ".") }

func (b brittleFS) call(kind, name string) error { return b.p.call(kind, name, false) }

func (b brittleFS) change(kind, name string, do func() error) error {
	if err := b.p.call(kind, name, true); err != nil {
		return err
	}
	return do()
}

func (b brittleFS) Sub(name string) (vfs.FS, error) {
	if err := b.call("open folder", name); err != nil {
		return nil, err
	}
	sub, err := b.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return brittleFS{sub, b.p}, nil
}

func (b brittleFS) Lock(name string) vfs.Lock { return brittleLock{b.FS.Lock(name), name, b.p} }

// brittleLock is a lock that a dead process cannot take. It can release it, as the system does then.
type brittleLock struct {
	vfs.Lock
	name string
	p    *faultPlan
}

func (l brittleLock) Acquire(ctx context.Context) error {
	if err := l.p.call("lock", l.name, false); err != nil {
		return err
	}
	return l.Lock.Acquire(ctx)
}

func (l brittleLock) TryAcquire() (bool, error) {
	if err := l.p.call("lock", l.name, false); err != nil {
		return false, err
	}
	return l.Lock.TryAcquire()
}

func (l brittleLock) AcquireShared(ctx context.Context) error {
	if err := l.p.call("lock", l.name, false); err != nil {
		return err
	}
	return l.Lock.AcquireShared(ctx)
}

type brittleFile struct {
	vfs.File
	name string
	p    *faultPlan
}

func (f *brittleFile) Read(b []byte) (int, error) {
	if err := f.p.call("read", f.name, false); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func (f *brittleFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.p.call("read", f.name, false); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

func (f *brittleFile) Write(b []byte) (int, error) {
	if err := f.p.call("write", f.name, true); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f *brittleFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.p.call("write", f.name, true); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

func (f *brittleFile) Stat() (fs.FileInfo, error) {
	if err := f.p.call("stat", f.name, false); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *brittleFile) Truncate(size int64) error {
	if err := f.p.call("truncate", f.name, true); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *brittleFile) SetModTime(t time.Time) error {
	if err := f.p.call("set time of", f.name, true); err != nil {
		return err
	}
	return f.File.SetModTime(t)
}

func (f *brittleFile) Sync() error     { return f.p.call("sync", f.name, false) }
func (f *brittleFile) Datasync() error { return f.p.call("sync", f.name, false) }
