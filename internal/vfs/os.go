package vfs

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// OS opens a folder of the real file system. The FS follows no symbolic link out of the folder (see [os.Root]), and
// writes through none.
func OS(dir string) (FS, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	return &osFS{root: r, dir: abs}, nil
}

type osFS struct {
	root *os.Root
	dir  string // the path when it was opened, for locks only

	mu    sync.Mutex
	self  *os.File               // the folder; SyncAll on it reports write failures since it was opened
	locks map[string]*lockFolder // open folders of lock files

	syncing sync.Mutex
	failed  uint64 // failed calls of SyncAll; guarded by syncing
}

func (o *osFS) OpenFile(name string, flag int) (File, error) {
	writes := flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0
	if flag&os.O_CREATE != 0 {
		if _, err := o.handle(); err != nil {
			return nil, err
		}
		f, err := o.root.OpenFile(name, flag|os.O_EXCL|openFlags, filePerm)
		if err == nil {
			if err := restrict(f, filePerm); err != nil {
				_ = f.Close()
				return nil, err
			}
			return osFile{f}, nil
		}
		if flag&os.O_EXCL != 0 || !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		flag &^= os.O_CREATE
	}
	if writes {
		info, err := o.root.Lstat(name)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		}
	}
	f, err := o.root.OpenFile(name, flag|openFlags, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// handle returns the folder itself, opened once.
func (o *osFS) handle() (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.self == nil {
		self, err := o.root.OpenFile(".", os.O_RDONLY|folderFlags, 0)
		if err != nil {
			return nil, err
		}
		o.self = self
	}
	return o.self, nil
}

func (o *osFS) Rename(from, to string) error { return o.root.Rename(from, to) }
func (o *osFS) Remove(name string) error     { return o.root.Remove(name) }

func (o *osFS) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.self != nil {
		_ = o.self.Close()
	}
	for _, folder := range o.locks {
		_ = folder.Close()
	}
	o.locks = nil
	return o.root.Close()
}

func (o *osFS) RenameNew(from, to string) error {
	err := o.in(from, func(folder *os.File, old string) error {
		return o.in(to, func(there *os.File, name string) error { return renameNew(folder, old, there, name) })
	})
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// Without such a call, another process may create the target between check and rename.
	if _, err := o.root.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return o.root.Rename(from, to)
}

// in calls f with the folder that holds a name, and the last part of the name.
func (o *osFS) in(name string, f func(folder *os.File, base string) error) error {
	if !strings.ContainsRune(name, '/') {
		folder, err := o.handle()
		if err != nil {
			return err
		}
		return f(folder, name)
	}
	folder, err := o.root.OpenFile(path.Dir(name), os.O_RDONLY|folderFlags, 0)
	if err != nil {
		return err
	}
	defer folder.Close()
	return f(folder, path.Base(name))
}

func (o *osFS) Mkdir(name string) error {
	// The umask can only remove bits from 0700, which makes the folder useless to its owner. A chmod restores them.
	if err := o.root.Mkdir(name, dirPerm); err != nil {
		return err
	}
	if info, err := o.root.Lstat(name); err == nil && info.Mode().Perm() != dirPerm {
		return o.root.Chmod(name, dirPerm)
	}
	return nil
}

func (o *osFS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		f, err := o.root.OpenFile(name, os.O_RDONLY|folderFlags, 0)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		folder, err := withoutRoot(f)
		if err != nil {
			yield(nil, err)
			return
		}
		defer folder.Close()
		for {
			list, err := folder.ReadDir(512)
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func (o *osFS) Replace(name string, data []byte) error {
	dir, base := path.Split(name)
	if dir == "" {
		return replaceIn(o.root, base, data)
	}
	sub, err := o.root.OpenRoot(path.Clean(dir))
	if err != nil {
		return err
	}
	defer sub.Close()
	return replaceIn(sub, base, data)
}

func (o *osFS) SyncDir(name string) error {
	f, err := o.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncDir(f)
}

func (o *osFS) SyncAll() error {
	f, err := o.handle()
	if err != nil {
		return err
	}
	o.syncing.Lock()
	defer o.syncing.Unlock()
	err = syncAll(f)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		o.failed++
	}
	return err
}

func (o *osFS) SyncFailures() uint64 {
	o.syncing.Lock()
	defer o.syncing.Unlock()
	return o.failed
}

func (o *osFS) Sub(name string) (FS, error) {
	// A FIFO would block.
	if info, err := o.root.Lstat(name); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	r, err := o.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &osFS{root: r, dir: filepath.Join(o.dir, filepath.FromSlash(name))}, nil
}

type osFile struct{ *os.File }

// FileOf wraps a file that was opened by its path.
func FileOf(f *os.File) File { return osFile{f} }

// MkdirAll makes a folder and its missing parents in the real file system, each 0700 less the umask.
func MkdirAll(dir string) error {
	return os.MkdirAll(dir, dirPerm)
}
