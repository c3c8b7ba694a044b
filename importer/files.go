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

// Files lists the histories under root, as [Walk] does.
func Files(root string) iter.Seq2[string, error] { return Walk(root, nil) }

// Walk lists the files that may be histories: root itself if it is a file, else every regular file in it whose name
// ends in .jsonl, .json, .traj, .zst or .db. A folder's own files come before those of its folders. Some histories are
// folders: a folder with one file for each event is listed as such, and of a storage folder of opencode only the
// sessions are listed, as their messages come with them.
//
// Walk follows no symbolic link below root, and skips folders that are stores. It calls passed, which may be nil, for
// each file that it passes over because of its name. An error concerns the path that comes with it, and the listing
// continues.
func Walk(root string, passed func(path string)) iter.Seq2[string, error] {
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
		if passed == nil {
			passed = func(string) {}
		}
		(&walker{passed, func(string) {}, yield}).list(root)
	}
}

// historyNames are the endings of the names of histories.
var historyNames = []string{".jsonl", ".json", ".traj", ".zst", ".db"}

// walker lists the histories in folders.
type walker struct {
	passed func(path string) // a file with another name
	folder func(path string) // a folder in which new files of histories appear
	yield  func(string, error) bool
}

func (w *walker) list(dir string) bool {
	w.folder(dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true // removed meanwhile
	}
	if err != nil {
		return w.yield(dir, err)
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == storeFile }) {
		return true
	}
	if isEventFolder(dir, entries) {
		return w.yield(dir, nil)
	}
	storage := isOpenCodeStorage(entries)
	if storage {
		w.storage(dir)
	}
	for _, e := range entries {
		switch ext := strings.ToLower(filepath.Ext(e.Name())); {
		case !e.Type().IsRegular() || storage:
		case !slices.Contains(historyNames, ext):
			w.passed(filepath.Join(dir, e.Name()))
		case !w.yield(filepath.Join(dir, e.Name()), nil):
			return false
		}
	}
	for _, e := range entries {
		if !e.IsDir() || storage && e.Name() != "session" {
			continue
		}
		if !w.list(filepath.Join(dir, e.Name())) {
			return false
		}
	}
	return true
}

// storage names the folders of a storage of opencode in which new messages and parts appear. The parts of a message are
// in a folder of their own.
func (w *walker) storage(dir string) {
	messages := filepath.Join(dir, "message")
	w.folder(messages)
	w.folder(filepath.Join(dir, "part"))
	entries, _ := os.ReadDir(messages) // the import reports an error
	for _, e := range entries {
		if e.IsDir() {
			w.folder(filepath.Join(messages, e.Name()))
		}
	}
}

// storeFile is in the folder of a store.
const storeFile = "ctxdir.json"

// isEventFolder reports whether a folder is a conversation with one file for each event.
func isEventFolder(dir string, entries []fs.DirEntry) bool {
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { _, ok := eventNumber(e.Name()); return ok }) {
		return false
	}
	f, err := openFolder(dir)
	if err != nil {
		return false
	}
	f.root.Close()
	return true
}

// isOpenCodeStorage reports whether a folder is the storage of opencode before version 1.2.
func isOpenCodeStorage(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc([]string{"session", "message", "part"}, func(name string) bool {
		return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == name })
	})
}
