package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Folder is the folder of blobs in a store.
const Folder = "blobs"

const Suffix = ".zst"

// Store is the blobs of a store. All methods may be called at the same time, from several processes too.
//
// Nothing here takes a lock. Who removes blobs must make sure that no one is about to refer to them: a put
// of a blob that exists touches it, so that its modification time tells when it was last wanted.
// The fan-out folders must not be removed while a Store is open.
type Store struct {
	fs    vfs.FS
	aside func(path string) error // see SetAside; nil leaves everything where it is

	mu      sync.Mutex
	durable [1 << 16 / 64]uint64 // fan-out folders whose names this Store has synced, a bit each
}

// Open returns the blobs of the store whose folder is fsys. It touches nothing: the folder of blobs is
// made by the first put.
func Open(fsys vfs.FS, opts ...Option) *Store {
	s := &Store{fs: fsys}
	for _, f := range opts {
		f(s)
	}
	return s
}

// Option changes how a Store is opened.
type Option func(*Store)

// SetAside gives the Store what takes a thing away that lies where a blob or a folder of blobs belongs and is neither:
// a link, a folder in the place of a blob, a file in that of a folder. path is below the store's folder. Another writer may
// have been faster, so aside must look again, while no other one is at it, and leave what is in order alone. Without it
// what is in the way is an error that wraps vfs.ErrNotRegular or vfs.ErrNotFolder.
func SetAside(aside func(path string) error) Option { return func(s *Store) { s.aside = aside } }

// InOrder reports whether what lies at a path below the store's folder may stay there: a blob must be a regular file,
// and what leads to it a folder.
func InOrder(path string, info fs.FileInfo) bool {
	if strings.HasSuffix(path, Suffix) {
		return info.Mode().IsRegular()
	}
	return info.IsDir()
}

// makeWay sets aside what lies in the place of a blob, or of a folder of blobs, and is none.
func (s *Store) makeWay(path string) error {
	info, err := s.fs.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || InOrder(path, info) {
		return err
	}
	if s.aside != nil {
		return s.aside(path)
	}
	if strings.HasSuffix(path, Suffix) {
		return &fs.PathError{Op: "replace", Path: path, Err: vfs.ErrNotRegular}
	}
	return &fs.PathError{Op: "mkdir", Path: path, Err: vfs.ErrNotFolder}
}

// mkdir makes a folder of blobs, unless it is there.
func (s *Store) mkdir(path string) error {
	err := s.fs.Mkdir(path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.makeWay(path); err != nil {
		return err
	}
	if err := s.fs.Mkdir(path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Path returns a blob's name below the store's folder.
func Path(sum Sum) string { return leaf(sum) + "/" + sum.String() + Suffix }

// leaf returns the folder of a blob.
func leaf(sum Sum) string { return fmt.Sprintf(Folder+"/%02x/%02x", sum[0], sum[1]) }

// Info is what is known of a blob without decoding it.
type Info struct {
	Sum     Sum
	Size    int64 // bytes of the payload, as the file says
	Stored  int64 // bytes of the file
	ModTime time.Time
}

// Stat describes a blob from the head of its file. The error wraps fs.ErrNotExist where there is none and
// [ErrDamaged] where the head is not that of a blob.
func (s *Store) Stat(sum Sum) (Info, error) {
	f, info, err := s.open(sum, os.O_RDONLY)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	size, err := readHeader(f)
	if err != nil {
		return Info{}, headerError(sum, err)
	}
	return Info{sum, size, info.Size(), info.ModTime()}, nil
}

// Touch sets a blob's modification time to now. The new time is not durable.
func (s *Store) Touch(sum Sum) error {
	f, _, err := s.open(sum, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.SetModTime(time.Now())
}

// open opens a blob's file, which must be a regular one: a link is not followed, even where it leads to a blob.
func (s *Store) open(sum Sum, flag int) (vfs.File, fs.FileInfo, error) {
	return s.openFile(Path(sum), sum, flag)
}

func (s *Store) openFile(path string, sum Sum, flag int) (vfs.File, fs.FileInfo, error) {
	info, err := s.fs.Lstat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("blob %s: %w", sum, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, damaged(sum, "%v", vfs.ErrNotRegular)
	}
	f, err := s.fs.OpenFile(path, flag)
	if err != nil {
		return nil, nil, fmt.Errorf("blob %s: %w", sum, err)
	}
	info, err = f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// makeFolders makes the folder of a blob and those above it.
func (s *Store) makeFolders(sum Sum) error {
	for _, name := range folders(sum) {
		if err := s.mkdir(name); err != nil {
			return err
		}
	}
	return nil
}

// makeDurableFolders is makeFolders that makes their names durable. That another writer made them says nothing:
// it may not have synced them yet. So each Store syncs the names that lead to a fan-out folder the first
// time it uses it, and then never again.
func (s *Store) makeDurableFolders(sum Sum) error {
	word, bit := int(sum[0])<<2|int(sum[1])>>6, uint64(1)<<(sum[1]&63)
	s.mu.Lock()
	known := s.durable[word]&bit != 0
	s.mu.Unlock()
	if known {
		if info, err := s.fs.Lstat(leaf(sum)); err == nil && info.IsDir() {
			return nil
		}
	}
	// Crash order: from the top down, each name durable before anything below it counts.
	parent := "."
	for _, name := range folders(sum) {
		if err := s.mkdir(name); err != nil {
			return err
		}
		if err := s.fs.SyncDir(parent); err != nil {
			return err
		}
		parent = name
	}
	s.mu.Lock()
	s.durable[word] |= bit
	s.mu.Unlock()
	return nil
}

func folders(sum Sum) [3]string {
	return [3]string{Folder, fmt.Sprintf(Folder+"/%02x", sum[0]), leaf(sum)}
}
