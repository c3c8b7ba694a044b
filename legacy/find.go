package legacy

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Found is a path that may be a legacy context.
type Found struct {
	Path   string
	Format Format // [None] for a file that is something else
	Backup bool   // it was migrated before, and only asked for by its name
}

// Find looks for legacy contexts: at root, or in the folder root and those below it. It yields every file whose name ends in .json, with
// what it is, and the folders of split contexts, but nothing below root with the suffix of what was migrated. It does not look into the folders of
// contexts, nor into those in which a store keeps what is not a context; it follows no link below root. An error is about the path that comes with
// it; the search goes on. What it holds does not grow with the number of files in a folder.
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
		if info.IsDir() && !named.Backup {
			findIn(root, yield)
			return
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
	format, err := Detect(fsys, filepath.Base(path))
	return Found{Path: path, Format: format}, err
}

func findIn(dir string, yield func(Found, error) bool) bool {
	found, err := at(dir)
	if found.Path = dir; err != nil || found.Format == Split {
		return yield(found, err)
	}
	if found.Format == Context {
		return true
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true // moved meanwhile
	}
	if err != nil {
		return yield(found, err)
	}
	defer f.Close()
	_, err = os.Lstat(filepath.Join(dir, "ctxdir.json"))
	store := err == nil
	for {
		entries, err := f.ReadDir(512)
		for _, e := range entries {
			if !findEntry(dir, store, e, yield) {
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

func findEntry(dir string, store bool, e fs.DirEntry, yield func(Found, error) bool) bool {
	path := filepath.Join(dir, e.Name())
	switch {
	case store && (e.Name() == "ctxdir.json" || ours[e.Name()]):
		return true
	case IsBackup(e.Name()):
		return true
	case e.IsDir():
		return findIn(path, yield)
	case !e.Type().IsRegular() || !strings.EqualFold(filepath.Ext(e.Name()), nodeEnd):
		return true
	}
	found, err := at(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true // moved meanwhile
	}
	return yield(found, err)
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
