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

// Store gives access to the blobs of a store. All methods are safe for concurrent use, also across processes.
//
// The package takes no locks. A caller that removes blobs must ensure that no other is about to refer to them: a put of
// an existing blob touches it, so its modification time records when it was last wanted. The fan-out folders must not
// be removed while a Store is open.
type Store struct {
	fs    vfs.FS
	aside func(path string) error // see SetAside; nil leaves everything in place

	mu      sync.Mutex
	durable [1 << 16 / 64]uint64 // fan-out folders whose names this Store has synced, a bit each
}

// Open returns the blobs of the store with folder fsys. It changes nothing: the first put makes the folder of blobs.
func Open(fsys vfs.FS, opts ...Option) *Store {
	s := &Store{fs: fsys}
	for _, f := range opts {
		f(s)
	}
	return s
}

// Option changes how Open opens a Store.
type Option func(*Store)

// SetAside sets the function that moves away a foreign item in the place of a blob or a folder of blobs: a link, a
// folder in the place of a blob, a file in that of a folder. path is below the store's folder. Another writer may have
// been faster. So aside must check again, excluding others, and leave valid items alone. Without aside a foreign item
// gives an error that wraps vfs.ErrNotRegular or vfs.ErrNotFolder.
func SetAside(aside func(path string) error) Option { return func(s *Store) { s.aside = aside } }

// InOrder reports whether the item at a path below the store's folder may stay: a blob must be a regular file, and its
// parents folders.
func InOrder(path string, info fs.FileInfo) bool {
	if strings.HasSuffix(path, Suffix) {
		return info.Mode().IsRegular()
	}
	return info.IsDir()
}

// makeWay sets aside a foreign item in the place of a blob or of a folder of blobs.
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

// mkdir makes a folder of blobs, unless it exists.
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
func leaf(sum Sum) string {
	digits := sum.String()
	return Folder + "/" + digits[:2] + "/" + digits[2:4]
}

// Info describes a blob without decoding it.
type Info struct {
	Sum     Sum
	Size    int64 // bytes of the payload, as the file states
	Stored  int64 // bytes of the file
	ModTime time.Time
}

// Stat describes a blob from the head of its file. The error wraps fs.ErrNotExist if the blob does not exist, and
// [ErrDamaged] if the head is not that of a blob.
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

// open opens a blob's file, which must be regular. It follows no link, even to a blob.
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

// makeFolders makes the folder of a blob and its parents.
func (s *Store) makeFolders(sum Sum) error {
	for _, name := range folders(sum) {
		if err := s.mkdir(name); err != nil {
			return err
		}
	}
	return nil
}

// makeDurableFolders is makeFolders that also makes their names durable. An existing folder proves nothing: its maker
// may not have synced it yet. So each Store syncs the names that lead to a fan-out folder on first use, and only then.
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
