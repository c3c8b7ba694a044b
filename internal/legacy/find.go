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
	Path    string
	Format  Format // [None] for any other file
	Backup  bool   // a backup of an earlier migration, found only because root names it
	notJSON bool   // of an unknown format, and not readable as JSON
}

// foreignError returns the problem of a file among legacy contexts that is not a legacy context.
func (f Found) foreignError(among func() bool) error {
	if f.notJSON && among() {
		return damaged("the file is among legacy contexts, but is not JSON")
	}
	return nil
}

// errLink reports a link with the name of a legacy context.
var errLink = fmt.Errorf("%w: it is named like one, but is a link or a device; pass the path of the file itself", ErrNotLegacy)

// Find searches for legacy contexts: at root, or in the folder root and those below it. It yields every file whose name
// ends in .json, with its format, and the folders of split contexts, but no backups below root. It skips the folders of
// contexts, and those in which a store keeps anything but contexts. It follows no link below root. An error concerns
// the path that comes with it, and the search continues. An entry that has the name or the place of a legacy context
// without being one yields an error. Memory does not grow with the number of files in a folder.
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
			err = named.foreignError(func() bool { return holdsContexts(filepath.Dir(root)) })
		}
		if errors.Is(err, fs.ErrNotExist) {
			named.Path = root // moved meanwhile
		}
		yield(named, err)
	}
}

// Whole returns the folder of a split context for the path of its context.json, and any other path unchanged.
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

// at detects the format of a path.
func at(path string) (Found, error) {
	path = filepath.Clean(path)
	if path == filepath.Dir(path) && path != "." {
		return Found{Path: path}, nil // the root of the file system
	}
	fsys, err := vfs.OS(filepath.Dir(path))
	if err != nil {
		return Found{Path: path}, err
	}
	defer fsys.Close()
	format, notJSON, err := detect(fsys, filepath.Base(path))
	return Found{Path: path, Format: format, notJSON: notJSON}, err
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
		return true // moved meanwhile, or nothing to find
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
		err = found.foreignError(among)
	}
	return yield(found, err)
}

// holdsContexts reports whether a folder contains a legacy context, or a backup of one.
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

// backupEnd is the suffix of a backup, the migrated original.
const backupEnd = ".old"

// BackupName returns the nth name of a backup: with .old, .old-2, .old-3 and so on.
func BackupName(name string, n int) string {
	if n == 1 {
		return name + backupEnd
	}
	return name + backupEnd + "-" + strconv.Itoa(n)
}

// IsBackup reports whether a name is that of a backup.
func IsBackup(name string) bool { return Original(name) != name }

// Original is the name of a backup before the migration.
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

// ours are the folders in which a store keeps anything but contexts.
var ours = map[string]bool{"blobs": true, "locks": true, "staging": true, "trash": true}
