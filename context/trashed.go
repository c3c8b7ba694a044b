package context

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// maxItem bounds an item.json, in bytes.
	maxItem = 1 << 20
	// versionHead bounds where the envelope begins in a version that we wrote, in bytes.
	versionHead = 4 << 10
)

// TrashEntry is an item in a trash folder.
type TrashEntry struct {
	ID   uuid.UUID
	Path string // trash/ITEM, or trash/ITEM.json
	Item TrashItem
	// Problem is why the item has no description: item.json is missing or damaged.
	Problem error
	// Unread says that Problem is an error of reading: what is there may be good.
	Unread bool

	fs     vfs.FS
	folder bool
}

// EachTrash yields the items in the trash of a store's or a context's folder, ordered by id and thus by removal. It
// skips everything else there. A version comes without its envelope, which may be large: see Envelope. want, if not
// nil, selects the items to read; versions are not folders.
func EachTrash(fsys vfs.FS, want func(id uuid.UUID, folder bool) bool) iter.Seq2[*TrashEntry, error] {
	return func(yield func(*TrashEntry, error) bool) {
		entries, err := ListTrash(fsys)
		if err != nil {
			yield(nil, err)
			return
		}
		for t := range Items(fsys, entries, want) {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// ListTrash returns the entries in the trash of a store's or a context's folder, for [Items] and [SweepTrash]. A
// missing trash is empty.
func ListTrash(fsys vfs.FS) (entries []fs.DirEntry, err error) {
	for e, err := range fsys.ReadDir(Trash) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Items is EachTrash for a listed trash.
func Items(fsys vfs.FS, entries []fs.DirEntry, want func(id uuid.UUID, folder bool) bool) iter.Seq[*TrashEntry] {
	return func(yield func(*TrashEntry) bool) {
		var found []*TrashEntry
		for _, e := range entries {
			id, ok := ParseID(strings.TrimSuffix(e.Name(), MessageEnd))
			if folder := e.IsDir(); ok && folder == (len(e.Name()) == len(id.String())) && (folder || e.Type().IsRegular()) &&
				(want == nil || want(id, folder)) {
				found = append(found, &TrashEntry{ID: id, Path: Trash + "/" + e.Name(), fs: fsys, folder: folder})
			}
		}
		slices.SortFunc(found, func(a, b *TrashEntry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		for _, t := range found {
			err := t.read()
			if errors.Is(err, fs.ErrNotExist) && !t.there() {
				continue // it was purged meanwhile
			}
			t.Problem = err
			if !yield(t) {
				return
			}
		}
	}
}

// HoldsMore reports whether the item's folder contains anything that is not spent.
func (t *TrashEntry) HoldsMore(spent func(name string) bool) (bool, error) {
	if !t.folder {
		return false, nil
	}
	for e, err := range t.fs.ReadDir(t.Path) {
		if err != nil || !spent(e.Name()) || e.IsDir() {
			return err == nil, err
		}
	}
	return false, nil
}

func (t *TrashEntry) there() bool {
	_, err := t.fs.Lstat(t.Path)
	return err == nil
}

func (t *TrashEntry) read() error {
	b, err := t.head()
	if err != nil {
		t.Unread = vfs.IsFault(err)
		return err
	}
	var item TrashItem
	if err := json.Unmarshal(b, &item); err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	switch {
	case item.Check != "" && !CheckFits(bytes.TrimSpace(b)):
		return fmt.Errorf("%s is damaged: wrong checksum", t.Path)
	case item.Version != trashVersion:
		return fmt.Errorf("%w: %s has version %q, expected %q", ErrVersion, t.Path, item.Version, trashVersion)
	case item.RemovedAt.IsZero() || !writable(item.RemovedAt) || item.Kind == "":
		return fmt.Errorf("%s lacks its kind or time of removal", t.Path)
	}
	item.Envelope = nil
	t.Item = item
	return nil
}

// head returns the item's description.
func (t *TrashEntry) head() ([]byte, error) {
	if t.folder {
		return vfs.ReadFile(t.fs, t.Path+"/"+TrashNote, maxItem)
	}
	f, err := t.fs.OpenFile(t.Path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, versionHead)
	n, err := f.ReadAt(b, 0)
	if n == 0 {
		return nil, fmt.Errorf("%s cannot be read: %w", t.Path, err)
	}
	if i := bytes.Index(b[:n], []byte(`,"envelope":`)); i > 0 {
		return append(b[:i], '}'), nil
	}
	return vfs.ReadFile(t.fs, t.Path, maxItem) // a version that we wrote has it near the beginning
}

// Envelope reads the envelope of a version, byte for byte. It fails if the envelope is not the one that was saved.
func (t *TrashEntry) Envelope() ([]byte, error) {
	b, err := vfs.ReadFile(t.fs, t.Path, MaxMessage)
	if err != nil {
		return nil, err
	}
	var item TrashItem
	if err := json.Unmarshal(b, &item); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	if item.Sum != "" && item.Sum != sumOf(item.Envelope) {
		return nil, fmt.Errorf("%s is damaged: its envelope has a wrong checksum", t.Path)
	}
	return item.Envelope, nil
}

// Size returns the bytes of the item's files.
func (t *TrashEntry) Size() int64 {
	if t.folder {
		return vfs.TreeSize(t.fs, t.Path)
	}
	if info, err := t.fs.Lstat(t.Path); err == nil {
		return info.Size()
	}
	return 0
}

// Since returns the time of removal. Without a valid description it returns the later of the times of the item's id and
// of its folder.
func (t *TrashEntry) Since() time.Time {
	if t.Problem == nil {
		return t.Item.RemovedAt
	}
	at := TimeOf(t.ID)
	if info, err := t.fs.Lstat(t.Path); err == nil && info.ModTime().After(at) {
		at = info.ModTime()
	}
	return at
}

// TimeOf returns the time in an item's id, or the zero time. No item was removed before it.
func TimeOf(id uuid.UUID) time.Time {
	if id.Version() != 7 {
		return time.Time{}
	}
	return time.Unix(id.Time().UnixTime())
}

// Purge removes the item for good. The caller excludes other purges and restores in this trash.
//
// Crash order: the folder first gets a name that begins with a dot, durably, so that half an item never looks whole.
// SweepTrash removes what remains under that name.
func (t *TrashEntry) Purge() error {
	if !t.folder {
		return t.fs.Remove(t.Path)
	}
	going, err := t.hide()
	if err != nil {
		return err
	}
	return vfs.RemoveAll(t.fs, going)
}

// PurgeBut is Purge for a folder, of which one file stays under the name that begins with a dot. It returns that name.
func (t *TrashEntry) PurgeBut(file string) (going string, err error) {
	if going, err = t.hide(); err != nil {
		return "", err
	}
	return going, RemoveAllBut(t.fs, going, file)
}

func (t *TrashEntry) hide() (going string, err error) {
	going = Trash + "/." + t.ID.String()
	if err := vfs.RemoveAll(t.fs, going); err != nil {
		return "", err
	}
	if err := t.fs.Rename(t.Path, going); err != nil {
		return "", err
	}
	return going, t.fs.SyncDir(Trash)
}

// RemoveAllBut removes what is in a folder, except one file, durably.
func RemoveAllBut(fsys vfs.FS, folder, file string) error {
	var names []string
	for e, err := range fsys.ReadDir(folder) {
		if err != nil {
			return err
		}
		if e.Name() != file {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := vfs.RemoveAll(fsys, folder+"/"+name); err != nil {
			return err
		}
	}
	return fsys.SyncDir(folder)
}

// SweepTrash removes half-made and half-purged items: names that begin with a dot. The caller excludes processes that
// make such names. A failed removal does not stop the others.
func SweepTrash(fsys vfs.FS, entries []fs.DirEntry) error {
	var failed error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			failed = errors.Join(failed, vfs.RemoveAll(fsys, Trash+"/"+e.Name()))
		}
	}
	return failed
}
