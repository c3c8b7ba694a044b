package legacy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Found is a path that may be a legacy context.
type Found struct {
	Path   string
	Format Format // [None] for a file that is something else
	Backup bool   // it was migrated before, and only asked for by its name
	noJSON bool   // its kind is unknown, and it cannot be read as JSON
}

// odd says what is wrong with a file that has a place among legacy contexts, and is none.
func (f Found) odd(among func() bool) error {
	if f.noJSON && among() {
		return damaged("the file lies among legacy contexts, and is no JSON")
	}
	return nil
}

// errLink is about a link that has the name of a legacy context.
var errLink = fmt.Errorf("%w: it has the name of one, and is a link or a device; name the file itself", ErrNotLegacy)

// Find looks for legacy contexts: at root, or in the folder root and those below it. It yields every file whose name ends in .json, with
// what it is, and the folders of split contexts, but nothing below root with the suffix of what was migrated. It does not look into the folders of
// contexts, nor into those in which a store keeps what is not a context; it follows no link below root. An error is about the path that comes with
// it; the search goes on. What has the name or the place of a legacy context, and is none, gives an error. The memory it takes does not grow with the
// number of files in a folder.
func Find(root string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		info, err := os.Stat(root)
		if err != nil {
			yield(Found{Path: root}, err)
			return
		}
		if l, err := os.Lstat(root); err == nil && l.Mode()&fs.ModeSymlink != 0 {
			if root, err = filepath.EvalSymlinks(root); err != nil {
				yield(Found{Path: root}, err)
				return
			}
		}
		named, err := at(Whole(root))
		named.Backup = named.Format.Legacy() && IsBackup(filepath.Base(named.Path))
		if err == nil && info.IsDir() && !named.Backup {
			findIn(root, yield)
			return
		}
		if err == nil {
			err = named.odd(func() bool { return holdsContexts(filepath.Dir(root)) })
		}
		if errors.Is(err, fs.ErrNotExist) {
			named.Path = root // moved meanwhile
		}
		yield(named, err)
	}
}

// Whole returns the folder of the split context whose context.json a path is, and any other path as it is.
func Whole(path string) string {
	if filepath.Base(path) != ContextFile {
		return path
	}
	dir := filepath.Dir(path)
	if found, err := at(dir); err == nil && found.Format == Split {
		return dir
	}
	return path
}

// at detects what a path is.
func at(path string) (Found, error) {
	path = filepath.Clean(path)
	if path == filepath.Dir(path) && path != "." {
		return Found{Path: path}, nil // the root of all
	}
	fsys, err := vfs.OS(filepath.Dir(path))
	if err != nil {
		return Found{Path: path}, err
	}
	defer fsys.Close()
	format, noJSON, err := detect(fsys, filepath.Base(path))
	return Found{Path: path, Format: format, noJSON: noJSON}, err
}

func findIn(dir string, yield func(Found, error) bool) bool {
	found, err := at(dir)
	found.Path = dir
	var f *os.File
	if err == nil && found.Format == None {
		f, err = os.Open(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && found.Format == Context:
		return true // moved meanwhile, or nothing to look for
	case err != nil, found.Format == Split:
		return yield(found, err)
	}
	defer f.Close()
	_, err = os.Lstat(filepath.Join(dir, "ctxdir.json"))
	store := err == nil
	among := sync.OnceValue(func() bool { return holdsContexts(dir) })
	for {
		entries, err := f.ReadDir(512)
		for _, e := range entries {
			if !findEntry(dir, store, among, e, yield) {
				return false
			}
		}
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return yield(found, err)
		}
	}
}

func findEntry(dir string, store bool, among func() bool, e fs.DirEntry, yield func(Found, error) bool) bool {
	path := filepath.Join(dir, e.Name())
	_, named := parseID(strings.TrimSuffix(strings.ToLower(e.Name()), nodeEnd))
	switch {
	case store && (e.Name() == "ctxdir.json" || ours[e.Name()]):
		return true
	case IsBackup(e.Name()):
		return true
	case e.IsDir():
		return findIn(path, yield)
	case !e.Type().IsRegular() && named:
		return yield(Found{Path: path}, errLink)
	case !e.Type().IsRegular() || !strings.EqualFold(filepath.Ext(e.Name()), nodeEnd):
		return true
	}
	found, err := at(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true // moved meanwhile
	}
	if err == nil {
		err = found.odd(among)
	}
	return yield(found, err)
}

// holdsContexts reports whether there is a legacy context in a folder, or a file that was one before it was migrated.
func holdsContexts(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(512)
		for _, e := range entries {
			if !e.Type().IsRegular() || !strings.EqualFold(filepath.Ext(Original(e.Name())), nodeEnd) {
				continue
			}
			if found, err := at(filepath.Join(dir, e.Name())); err == nil && found.Format.Legacy() {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// backupEnd is added to the name of what was migrated.
const backupEnd = ".old"

// BackupName returns the nth name for what was migrated: with .old, .old-2, .old-3 and so on.
func BackupName(name string, n int) string {
	if n == 1 {
		return name + backupEnd
	}
	return name + backupEnd + "-" + strconv.Itoa(n)
}

// IsBackup reports whether a name is that of something that was migrated.
func IsBackup(name string) bool { return Original(name) != name }

// Original is the name that what was migrated had before.
func Original(name string) string {
	i := strings.LastIndex(name, backupEnd)
	if i < 0 {
		return name
	}
	n, numbered := strings.CutPrefix(name[i+len(backupEnd):], "-")
	if n == "" && !numbered || numbered && strings.Trim(n, "0123456789") == "" && n != "" {
		return name[:i]
	}
	return name
}

// ours are the folders in which a store keeps what is not a context.
var ours = map[string]bool{"blobs": true, "locks": true, "staging": true, "trash": true}
