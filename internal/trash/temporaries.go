package trash

import (
	"errors"
	"io/fs"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// ClearTemporaries removes the temporary files that interrupted writers left in folders of a context: they may hold what a
// purge removes. The caller holds the locks of the context, so that no process is writing one.
func ClearTemporaries(fsys vfs.FS, folders ...string) error {
	for _, folder := range folders {
		if err := clearNames(fsys, folder, IsTemporary); err != nil {
			return err
		}
	}
	return nil
}

// messageFolders returns the folders of message files.
func messageFolders(fsys vfs.FS) (folders []string, err error) {
	for e, err := range fsys.ReadDir(ctxfolder.Messages) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.IsDir() {
			folders = append(folders, ctxfolder.Messages+"/"+e.Name())
		}
	}
	return folders, nil
}

// clearNames removes the regular files of a folder that have some names, durably.
func clearNames(fsys vfs.FS, folder string, has func(name string) bool) error {
	var names []string
	for e, err := range fsys.ReadDir(folder) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Type().IsRegular() && has(e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := fsys.Remove(folder + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fsys.SyncDir(folder)
}

// IsTemporary reports whether a writer of ours gives a temporary file this name: a dot, the name of a file, and more.
// Editors put other files with a dot beside a message.
func IsTemporary(name string) bool {
	rest, dot := strings.CutPrefix(name, ".")
	if _, suspect := journal.SuspectOf(name); !dot || suspect {
		return false
	}
	for _, start := range []string{ctxfolder.MetadataFile, ctxfolder.IndexFile, ctxfolder.ErasingFile, "log-", "segment."} {
		if strings.HasPrefix(rest, start) {
			return true
		}
	}
	_, own := ctxfolder.ParseID(rest[:min(36, len(rest))])
	return own && !strings.HasSuffix(rest, ".swp")
}
