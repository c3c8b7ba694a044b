package pgfs

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"sync/atomic"
	"syscall"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/jackc/pgx/v5"
)

// FS is a folder of a user. All methods are safe for concurrent use.
type FS struct {
	v      *volume
	root   *node
	whole  bool // the result of Open
	closed atomic.Bool
	failed atomic.Uint64 // calls of SyncAll that failed
}

var _ vfs.FS = (*FS)(nil)

// locked runs a call with the tree locked.
func (f *FS) locked(op, name string, call func() error) error {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	err := f.v.alive()
	if f.closed.Load() {
		err = fs.ErrClosed
	}
	if err == nil {
		err = call()
	}
	return pathError(op, name, err)
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile is vfs.FS.OpenFile. It knows no O_SYNC.
func (f *FS) OpenFile(name string, flag int) (vfs.File, error) {
	var n *node
	err := f.locked("open", name, func() error {
		p, err := f.v.find(f.root, name)
		if err != nil {
			return err
		}
		create, write := flag&os.O_CREATE != 0, flag&(os.O_WRONLY|os.O_RDWR|os.O_TRUNC) != 0
		switch n = p.n; {
		case n == nil && !create:
			return syscall.ENOENT
		case n == nil:
			if n, err = f.v.create(p, false); err != nil {
				return err
			}
		case create && flag&os.O_EXCL != 0:
			return syscall.EEXIST
		case n.folder && (create || write):
			return syscall.EISDIR
		}
		f.v.hold(n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	h := &file{v: f.v, n: n, name: name, flag: flag}
	if flag&os.O_TRUNC != 0 && !n.folder {
		if err := h.truncate(0); err != nil {
			return nil, errors.Join(pathError("open", name, err), h.Close())
		}
	}
	return h, nil
}

// Lstat needs no round trip if the folder was read.
func (f *FS) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.locked("lstat", name, func() error {
		p, err := f.v.find(f.root, name)
		switch {
		case err != nil:
			return err
		case p.n == nil:
			return syscall.ENOENT
		}
		info = p.n.stat(path.Base(name))
		return nil
	})
	return info, err
}

// ReadDir yields the entries at the time of the call.
func (f *FS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		var list []entry
		err := f.locked("readdir", name, func() error {
			n, err := f.v.folder(f.root, name)
			switch {
			case err != nil:
				return err
			case n.gone:
				return syscall.ENOENT
			}
			if err := f.v.list(n); err != nil {
				return err
			}
			for base, e := range n.entries {
				list = append(list, entry{base, e})
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *FS) Mkdir(name string) error {
	return f.locked("mkdir", name, func() error {
		p, err := f.v.find(f.root, name)
		switch {
		case err != nil:
			return err
		case p.n != nil:
			return syscall.EEXIST
		}
		_, err = f.v.create(p, true)
		return err
	})
}

// Remove removes a file or an empty folder.
func (f *FS) Remove(name string) error {
	return f.locked("remove", name, func() error {
		p, err := f.v.find(f.root, name)
		if err != nil {
			return err
		}
		return f.v.remove(p)
	})
}

func (f *FS) Rename(from, to string) error    { return f.rename(from, to, false) }
func (f *FS) RenameNew(from, to string) error { return f.rename(from, to, true) }

func (f *FS) rename(from, to string, isNew bool) error {
	err := f.locked("rename", from, func() error {
		old, err := f.v.find(f.root, from)
		if err != nil {
			return err
		}
		at, err := f.v.find(f.root, to)
		if err != nil {
			return err
		}
		return f.v.rename(old, at, isNew)
	})
	var e *fs.PathError
	if errors.As(err, &e) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: e.Err}
	}
	return err
}

// Replace is vfs.FS.Replace. It needs no sync of its own: the rename is a later transaction than the content, so no crash
// keeps the name and loses the content.
func (f *FS) Replace(name string, data []byte) error {
	tmp := path.Join(path.Dir(name), vfs.TemporaryName(path.Base(name)))
	err := vfs.WriteNew(f, tmp, data)
	if err == nil {
		err = f.Rename(tmp, name)
	}
	if err != nil {
		_ = f.Remove(tmp)
	}
	return err
}

// SyncDir makes all earlier changes durable, of whichever folder. It needs no round trip if they are.
func (f *FS) SyncDir(name string) error {
	err := f.locked("syncdir", name, func() error {
		_, err := f.v.folder(f.root, name)
		return err
	})
	if err != nil {
		return err
	}
	return pathError("syncdir", name, f.v.sync())
}

func (f *FS) SyncAll() error {
	err := f.v.flushAll()
	if err != nil {
		f.failed.Add(1)
	}
	return pathError("syncall", ".", err)
}

func (f *FS) SyncFailures() uint64 { return f.failed.Load() }

// Sub opens a folder. The result follows it through renames.
func (f *FS) Sub(name string) (vfs.FS, error) {
	sub := &FS{v: f.v}
	err := f.locked("open", name, func() (err error) {
		if sub.root, err = f.v.folder(f.root, name); err == nil {
			f.v.hold(sub.root)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// Close closes this folder alone. That of the result of [Open] first makes everything durable and then ends all other
// handles, with fs.ErrClosed; the process still owns the user.
func (f *FS) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	err := f.v.release(f.root)
	if f.whole && f.v.alive() == nil {
		err = errors.Join(err, f.v.flushAll())
		_ = f.v.fail(fs.ErrClosed)
		f.v.mu.Lock()
		defer f.v.mu.Unlock()
		f.v.root.entries = nil
	}
	return err
}

// HasViews reports that nobody looks at the files, see [vfs.HasViews].
func (f *FS) HasViews() bool { return false }

// Statements returns how many statements were sent to the database for this user since [Open], those of Open included.
func (f *FS) Statements() int64 { return f.v.trips.Load() }

// Alive returns why nothing works any more: an error that wraps [ErrTaken], [ErrLost], [ErrUnknown] or fs.ErrClosed.
func (f *FS) Alive() error { return f.v.alive() }

// Look is Alive after a question to the database whether another process has taken over the user: reads alone do not find that
// out.
func (f *FS) Look(ctx context.Context) error { return f.v.look(ctx) }

const selectSize = `SELECT coalesce(sum(size), 0) FROM nodes WHERE user_id = $1`

// Size returns the length of all files of the user together, in bytes.
func (f *FS) Size() (bytes int64, err error) {
	err = f.v.read(func(rows pgx.Rows) error { return rows.Scan(&bytes) }, selectSize)
	return bytes, err
}
