package importer

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files lists the files that may be histories: root itself if it is a file, else every regular file in it whose name
// ends in .jsonl or .json. A folder's own files come before those of its folders. Files follows no symbolic link below
// root, and skips folders that are stores. An error concerns the path that comes with it, and the listing continues.
func Files(root string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		st, err := os.Stat(root)
		if err != nil {
			yield(root, err)
			return
		}
		if !st.IsDir() {
			yield(root, nil)
			return
		}
		listFolder(root, yield)
	}
}

func listFolder(dir string, yield func(string, error) bool) bool {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true // removed meanwhile
	}
	if err != nil {
		return yield(dir, err)
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "ctxdir.json" }) {
		return true
	}
	for _, e := range entries {
		ext := strings.ToLower(filepath.Ext(e.Name()))
		if e.Type().IsRegular() && (ext == ".jsonl" || ext == ".json") && !yield(filepath.Join(dir, e.Name()), nil) {
			return false
		}
	}
	for _, e := range entries {
		if e.IsDir() && !listFolder(filepath.Join(dir, e.Name()), yield) {
			return false
		}
	}
	return true
}
