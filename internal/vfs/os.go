package vfs

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
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
	return &osFS{tree: r, dir: abs}, nil
}

func (o *osFS) OpenFile(name string, flag int) (File, error) {
	if flag&os.O_CREATE != 0 {
		if _, err := o.handle(); err != nil {
			return nil, err
		}
		f, err := o.create(name, flag)
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
		return fileOf(o.openInRoot(name, flag&^os.O_CREATE, true))
	}
	return fileOf(o.openExisting(name, flag))
}

func (o *osFS) Rename(from, to string) error {
	return o.do(func(r *os.Root) error { return r.Rename(from, to) })
}

func (o *osFS) Remove(name string) error {
	return o.do(func(r *os.Root) error { return r.Remove(name) })
}

func (o *osFS) Close() error {
	o.locking.Lock()
	defer o.locking.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.self != nil {
		_ = o.self.Close()
	}
	for _, folder := range o.locks {
		_ = folder.Close()
	}
	o.locks = nil
	if o.tree == nil {
		return nil
	}
	return o.tree.Close()
}

func (o *osFS) RenameNew(from, to string) error {
	err := o.in(from, func(folder *os.File, old string) error {
		return o.in(to, func(there *os.File, name string) error { return renameNew(folder, old, there, name) })
	})
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// Without such a call, another process may create the target between check and rename.
	if _, err := o.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return o.Rename(from, to)
}

func (o *osFS) Mkdir(name string) error {
	// The umask can only remove bits from 0700, which makes the folder useless to its owner. A chmod restores them.
	return o.do(func(r *os.Root) error {
		if err := r.Mkdir(name, dirPerm); err != nil {
			return err
		}
		if info, err := r.Lstat(name); err == nil && info.Mode().Perm() != dirPerm {
			return r.Chmod(name, dirPerm)
		}
		return nil
	})
}

func (o *osFS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		f, err := o.openDir(name)
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
	return o.do(func(r *os.Root) error {
		dir, base := path.Split(name)
		if dir == "" {
			return replaceIn(r, base, data)
		}
		sub, err := r.OpenRoot(path.Clean(dir))
		if err != nil {
			return err
		}
		defer sub.Close()
		return replaceIn(sub, base, data)
	})
}

func (o *osFS) SyncDir(name string) error {
	if name == "." {
		f, err := o.handle()
		if err != nil {
			return err
		}
		return syncDir(f)
	}
	f, err := o.openDir(name)
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
	sub, _, err := o.subStat(name)
	return sub, err
}

func (o *osFS) subStat(name string) (FS, fs.FileInfo, error) {
	sub := &osFS{dir: filepath.Join(o.dir, filepath.FromSlash(name))}
	var info fs.FileInfo
	var err error
	sub.self, info, err = o.openFolder(name)
	if errors.Is(err, errors.ErrUnsupported) {
		info, err = o.Lstat(name)
		if err == nil && !info.IsDir() { // a FIFO would block
			err = &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
		}
		if err == nil {
			sub.tree, err = inRoot(o, func(r *os.Root) (*os.Root, error) { return r.OpenRoot(name) })
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return sub, info, nil
}

// MkdirAll makes a folder and its missing parents in the real file system, each 0700 less the umask.
func MkdirAll(dir string) error {
	return os.MkdirAll(dir, dirPerm)
}
