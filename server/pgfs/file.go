package pgfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// file is an open file. It outlives its name.
type file struct {
	v      *volume
	n      *node
	name   string
	flag   int
	off    int64
	closed atomic.Bool
}

// maxSize bounds a file, and how far a write beyond its end may reach, in bytes.
const maxSize = 1 << 36

var errOffset = errors.New("negative offset")

func (f *file) fail(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func (f *file) usable(write bool) error {
	switch {
	case f.closed.Load():
		return fs.ErrClosed
	case f.n.folder:
		return syscall.EISDIR
	case write && f.flag&(os.O_WRONLY|os.O_RDWR) == 0, !write && f.flag&os.O_WRONLY != 0:
		return syscall.EBADF
	}
	return nil
}

func (f *file) Read(b []byte) (n int, err error) {
	if err = f.usable(false); err == nil && len(b) > 0 {
		n, err = f.v.readAt(f.n, b, f.off)
	}
	f.off += int64(n)
	return n, f.fail("read", err)
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	if err = f.usable(false); err == nil && off < 0 {
		err = errOffset
	}
	if err == nil && len(b) > 0 {
		if n, err = f.v.readAt(f.n, b, off); err == nil && n < len(b) {
			err = io.EOF
		}
	}
	return n, f.fail("readat", err)
}

func (f *file) Write(b []byte) (n int, err error) {
	if f.flag&os.O_APPEND != 0 {
		f.n.mu.Lock()
		f.off = f.n.size
		f.n.mu.Unlock()
	}
	n, err = f.write(b, f.off)
	f.off += int64(n)
	return n, f.fail("write", err)
}

func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	if f.flag&os.O_APPEND != 0 {
		return 0, f.fail("writeat", errors.New("file opened with O_APPEND"))
	}
	if len(b) == 0 { // like os.File, on any handle
		return 0, nil
	}
	n, err = f.write(b, off)
	return n, f.fail("writeat", err)
}

// write keeps bytes in memory until a sync, and sends them before if there are many.
func (f *file) write(b []byte, off int64) (n int, err error) {
	if err := f.usable(true); err != nil {
		return 0, err
	}
	for len(b) > 0 {
		part := b[:min(len(b), maxUnsaved)]
		much, err := f.place(part, off)
		if err == nil && much {
			err = f.v.flush(f.n, false, false)
		}
		if err != nil {
			return n, err
		}
		n, off, b = n+len(part), off+int64(len(part)), b[len(part):]
	}
	return n, nil
}

// place writes into memory, and reports whether much is unsaved.
func (f *file) place(b []byte, off int64) (much bool, err error) {
	n := f.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := f.v.load(n); err != nil {
		return false, err
	}
	switch {
	case off < 0:
		return false, errOffset
	case off+int64(len(b)) > maxSize || off-n.size > maxGap:
		return false, syscall.EFBIG
	}
	n.content.write(b, off)
	n.resize()
	return n.content.unsaved >= maxUnsaved, nil
}

// maxGap bounds how many bytes a file grows without data.
const maxGap = 1 << 30

// resize notes a write. The caller holds n.mu.
func (n *node) resize() {
	if size := n.content.size(); size != n.size {
		n.size, n.resized = size, true
	}
	n.touch()
}

func (f *file) Truncate(size int64) error {
	err := f.usable(true)
	if errors.Is(err, syscall.EBADF) {
		err = syscall.EINVAL // as ftruncate
	}
	if err == nil {
		err = f.truncate(size)
	}
	return f.fail("truncate", err)
}

func (f *file) truncate(size int64) error {
	n := f.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := f.v.load(n); err != nil {
		return err
	}
	switch {
	case size < 0:
		return syscall.EINVAL
	case size > maxSize || size-n.size > maxGap:
		return syscall.EFBIG
	}
	n.content.truncate(size)
	n.resize()
	return nil
}

func (f *file) SetModTime(t time.Time) error {
	if f.closed.Load() {
		return f.fail("utimensat", fs.ErrClosed)
	}
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.n.mtime, f.n.changed = t.UnixNano(), true
	return nil
}

func (f *file) Stat() (fs.FileInfo, error) {
	if f.closed.Load() {
		return nil, f.fail("stat", fs.ErrClosed)
	}
	return f.n.stat(f.name), nil
}

func (f *file) Sync() error     { return f.fail("sync", f.sync(true)) }
func (f *file) Datasync() error { return f.fail("fdatasync", f.sync(false)) }

func (f *file) sync(times bool) error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	return f.v.flush(f.n, true, times)
}

// Close sends what a handle for writing has not synced, without a wait: memory does not keep it.
func (f *file) Close() error {
	if f.closed.Swap(true) {
		return f.fail("close", fs.ErrClosed)
	}
	var err error
	if f.flag&(os.O_WRONLY|os.O_RDWR) != 0 && !f.n.folder && !f.gone() {
		err = f.v.flush(f.n, false, true)
	}
	return f.fail("close", errors.Join(err, f.v.release(f.n)))
}

func (f *file) gone() bool {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	return f.n.gone
}
