package vfs

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
)

const (
	filePerm = 0o600
	dirPerm  = 0o700
)

type osFS struct {
	dir string // the path when it was opened, for locks only

	mu   sync.Mutex
	tree *os.Root // the folder with those below it, see root; nil until it is needed, if self is not
	self *os.File // the folder, see handle; SyncAll on it reports write failures since it was opened

	locking sync.Mutex             // taken before mu
	locks   map[string]*lockFolder // open folders of lock files; guarded by locking

	syncing sync.Mutex
	failed  uint64 // failed calls of SyncAll; guarded by syncing
}

type osFile struct{ *os.File }

// FileOf wraps a file that was opened by its path.
func FileOf(f *os.File) File { return osFile{f} }

func fileOf(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// createInRoot makes a new file anywhere below the folder.
func (o *osFS) createInRoot(name string, flag int) (*os.File, error) {
	return inRoot(o, func(r *os.Root) (*os.File, error) { return r.OpenFile(name, flag|os.O_EXCL|openFlags, filePerm) })
}

// openInRoot opens an existing file anywhere below the folder. With strict, it follows no link, and opens no folder.
func (o *osFS) openInRoot(name string, flag int, strict bool) (*os.File, error) {
	if strict || flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		info, err := o.lstatInRoot(name)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		}
	}
	return inRoot(o, func(r *os.Root) (*os.File, error) { return r.OpenFile(name, flag|openFlags, filePerm) })
}

// openDir opens a folder anywhere below the folder.
func (o *osFS) openDir(name string) (*os.File, error) {
	return inRoot(o, func(r *os.Root) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY|folderFlags, 0) })
}

func (o *osFS) lstatInRoot(name string) (fs.FileInfo, error) {
	return inRoot(o, func(r *os.Root) (fs.FileInfo, error) { return r.Lstat(name) })
}

// inRoot calls f with the folder and those below it, opened once.
func inRoot[T any](o *osFS, f func(*os.Root) (T, error)) (result T, err error) {
	o.mu.Lock()
	if o.tree == nil {
		o.tree, err = openTree(o.self)
	}
	tree := o.tree
	o.mu.Unlock()
	if err != nil {
		return result, err
	}
	return f(tree)
}

// do is inRoot without a result.
func (o *osFS) do(f func(*os.Root) error) error {
	_, err := inRoot(o, func(r *os.Root) (struct{}, error) { return struct{}{}, f(r) })
	return err
}

// handle returns the folder itself, opened once.
func (o *osFS) handle() (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.self == nil {
		self, err := o.tree.OpenFile(".", os.O_RDONLY|folderFlags, 0)
		if err != nil {
			return nil, err
		}
		o.self = self
	}
	return o.self, nil
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
	folder, err := o.openDir(path.Dir(name))
	if err != nil {
		return err
	}
	defer folder.Close()
	return f(folder, path.Base(name))
}

// lockFolder is an open folder of lock files. The locks of an FS share it.
type lockFolder struct {
	FS
	self fs.FileInfo
}
