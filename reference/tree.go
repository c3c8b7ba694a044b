package reference

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"syscall"
)

// Errors about a file of the workspace.
var (
	errMissing  = errors.New("file not found")
	errFolder   = errors.New("it is a folder now")
	errSpecial  = errors.New("not a regular file")
	errTooLarge = fmt.Errorf("it is larger than %d MiB, or has more than a million lines", maxContent>>20)
)

// tree is a workspace. No path in it leads outside.
type tree struct {
	dir  string
	root *os.Root
	last struct { // the file read last
		name string
		c    *content
		err  error
	}
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	return &tree{dir: dir, root: root}, nil
}

func (t *tree) close() { _ = t.root.Close() }

// read returns a file.
func (t *tree) read(name string) (*content, error) {
	if l := &t.last; l.name != name {
		l.name = name
		l.c, l.err = t.load(name)
	}
	return t.last.c, t.last.err
}

func (t *tree) load(name string) (*content, error) {
	if !validFile(name) {
		return nil, fmt.Errorf("%w: %q is not a path below the root of a workspace", ErrInvalid, cut(name, 200))
	}
	name = filepath.FromSlash(name)
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, reasonOf(err)
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	if runtime.GOOS != "windows" {
		flags |= syscall.O_NONBLOCK // it may have become a pipe
	}
	f, err := t.root.OpenFile(name, flags, 0)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, reasonOf(err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxContent+1))
	if err != nil {
		return nil, reasonOf(err)
	}
	if c := newContent(b); c != nil {
		return c, nil
	}
	return nil, errTooLarge
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errFolder
	case !info.Mode().IsRegular():
		return errSpecial
	case info.Size() > maxContent:
		return errTooLarge
	}
	return nil
}

// reasonOf returns an error without a path in it.
func reasonOf(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return errMissing
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// maxFiles bounds the files that a search for a moved file looks at.
const maxFiles = 20_000

// walk returns the regular files of a workspace that is not a repository, at most maxFiles.
func (t *tree) walk() (files []string) {
	entries := 0
	_ = fs.WalkDir(t.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > 4*maxFiles || len(files) == maxFiles {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return nil //nolint:nilerr // a folder that cannot be read has no file to offer
		case d.IsDir() && hidden(name):
			return fs.SkipDir
		case d.Type().IsRegular() && validFile(name):
			files = append(files, name)
		}
		return nil
	})
	return files
}

// hidden reports whether a folder holds data of git, of ctxdir, or what package managers fetch.
func hidden(folder string) bool {
	switch path.Base(folder) {
	case ".git", ".hg", ".jj", ".ctxdir", "node_modules":
		return true
	}
	return false
}

// FindRoot returns the root of the workspace that has a folder: the top of its git working tree, or the folder itself.
func FindRoot(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return abs
		}
	}
}
