package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Folder is where the files of a history are.
type Folder struct {
	Store, Context uuid.UUID
	Logs           vfs.FS // the folder of the context
	Segments       vfs.FS // the one of its segments
}

// FolderOf returns where the files of a context are, in its folder.
func FolderOf(store, context uuid.UUID, folder vfs.FS) Folder {
	return Folder{Store: store, Context: context, Logs: folder, Segments: vfs.Below(folder, ctxfolder.Segments)}
}

// IsNeeded reports whether a copy of the context needs a file of its folder: logs, metadata.json and index.json, and of the
// folders in it all but trash and temporary files. path is relative to the folder.
func IsNeeded(path string) bool {
	dir, name, inside := strings.Cut(path, "/")
	if !inside {
		_, log := journal.ParseName(path)
		return log || path == ctxfolder.MetadataFile || path == ctxfolder.IndexFile
	}
	return dir != ctxfolder.Trash && !strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], ".")
}

// StoreOf returns the id of the store that the newest log in the folder of a context names; [uuid.Nil] if none does. The
// error wraps [ctxfolder.ErrVersion] if a file has another version.
func StoreOf(folder vfs.FS) (uuid.UUID, error) {
	dir := &ctxfolder.Dir{FS: folder}
	if _, _, err := dir.ReadMetadata(); errors.Is(err, ctxfolder.ErrVersion) {
		return uuid.Nil, err
	}
	names, err := listLogs(folder)
	if err != nil {
		return uuid.Nil, err
	}
	for _, name := range slices.Backward(names) {
		l, err := journal.Open(folder, name)
		if errors.Is(err, journal.ErrVersion) {
			return uuid.Nil, fmt.Errorf("%w: %w", ctxfolder.ErrVersion, err)
		}
		if err != nil {
			continue
		}
		_, store := l.Of()
		_ = l.Close() // it was only read
		if store != uuid.Nil {
			return store, nil
		}
	}
	return uuid.Nil, nil
}

// listLogs returns the names of the logs in the folder of a context, in order of their numbers.
func listLogs(dir vfs.FS) (names []string, err error) {
	for e, err := range dir.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		if _, ok := journal.ParseName(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		na, _ := journal.ParseName(a)
		nb, _ := journal.ParseName(b)
		return cmp.Or(cmp.Compare(na, nb), cmp.Compare(a, b))
	})
	return names, nil
}

// tips says where logs go on.
type tips map[archive.Name]bool

// tip is the end of a segment, as its name says it.
func tip(n archive.Name) archive.Name { return archive.Name{To: n.To, Chain: n.Chain} }

// listSegments returns the names of the segments that make up the history, in order: back from the newest one that a log
// continues, always the largest that ends where the next one begins, in its newest edition. The others are contained in
// these, or of another history. missing are the numbers of records that none has, from … to each.
func listSegments(dir vfs.FS, logs tips) (names []archive.Name, missing [][2]uint64, err error) {
	var all []archive.Name
	for e, err := range dir.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if n, ok := archive.ParseName(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b archive.Name) int {
		return cmp.Or(-cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), -cmp.Compare(a.Edition, b.Edition), cmp.Compare(a.Chain, b.Chain))
	})
	newest := max(slices.IndexFunc(all, func(n archive.Name) bool { return logs[tip(n)] }), 0)
	for i := newest; i < len(all); {
		names = append(names, all[i])
		want := all[i].From - 1
		for i++; i < len(all) && all[i].To > want; {
			i++
		}
		if i < len(all) && all[i].To < want {
			missing = append(missing, [2]uint64{all[i].To + 1, want})
		}
		if i < len(all) && all[i].To == want {
			same := slices.IndexFunc(all[i:], func(n archive.Name) bool { return n.To < want })
			if same < 0 {
				same = len(all) - i
			}
			i += before(dir, names[len(names)-1], all[i:i+same])
		}
	}
	slices.Reverse(names)
	if len(names) > 0 && names[0].From != 1 {
		missing = append(missing, [2]uint64{1, names[0].From - 1})
	}
	return names, missing, nil
}

// before returns which of several segments a later one continues: the first, if that cannot be read.
func before(dir vfs.FS, next archive.Name, all []archive.Name) int {
	if !slices.ContainsFunc(all, func(n archive.Name) bool { return n.Chain != all[0].Chain }) {
		return 0
	}
	s, err := archive.Open(dir, next.File())
	if err != nil {
		return 0
	}
	defer s.Close()
	return max(slices.IndexFunc(all, func(n archive.Name) bool { return n.Chain == uint32(s.From().Chain>>32) }), 0)
}
