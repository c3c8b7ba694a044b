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
	// ClearedFile says in an item of kind TrashLine that no message file of what it keeps is left.
	ClearedFile = "cleared"
	// versionHead is where the envelope of a version that we wrote has begun, in bytes.
	versionHead = 4 << 10
)

// PieceFile is the n-th file of messages in an item of kind TrashLine, from 1 on.
func PieceFile(n int) string { return fmt.Sprintf("messages-%d.jsonl", n) }

// Trashed is an item in a trash folder.
type Trashed struct {
	ID   uuid.UUID
	Path string // trash/ITEM, or trash/ITEM.json
	Item TrashItem
	// Problem is why the item does not say what it is: item.json is missing or damaged.
	Problem error

	fs     vfs.FS
	folder bool
}

// EachTrash yields the items in the trash of a store's or a context's folder, by their ids: in order of removal. What is in
// there and is no item is passed over. A version comes without its envelope, which may be large: see Envelope. Of want, which may be
// nil, it asks which items to read; those of versions are no folders.
func EachTrash(fsys vfs.FS, want func(id uuid.UUID, folder bool) bool) iter.Seq2[*Trashed, error] {
	return func(yield func(*Trashed, error) bool) {
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

// ListTrash returns what there is in the trash of a store's or a context's folder, for [Items] and [SweepTrash]. A trash that is not
// there is empty.
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

// Items is EachTrash for a trash that was listed.
func Items(fsys vfs.FS, entries []fs.DirEntry, want func(id uuid.UUID, folder bool) bool) iter.Seq[*Trashed] {
	return func(yield func(*Trashed) bool) {
		var found []*Trashed
		for _, e := range entries {
			id, ok := ParseID(strings.TrimSuffix(e.Name(), MessageEnd))
			if folder := e.IsDir(); ok && folder == (len(e.Name()) == len(id.String())) && (folder || e.Type().IsRegular()) &&
				(want == nil || want(id, folder)) {
				found = append(found, &Trashed{ID: id, Path: Trash + "/" + e.Name(), fs: fsys, folder: folder})
			}
		}
		slices.SortFunc(found, func(a, b *Trashed) int { return bytes.Compare(a.ID[:], b.ID[:]) })
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

// ReadTrashed reads the item with a path, as EachTrash has it. It fails where the item does not say what it is.
func ReadTrashed(fsys vfs.FS, path string) (*Trashed, error) {
	name := strings.TrimPrefix(path, Trash+"/")
	id, ok := ParseID(strings.TrimSuffix(name, MessageEnd))
	if !ok {
		return nil, fmt.Errorf("%q is no item in trash", path)
	}
	t := &Trashed{ID: id, Path: Trash + "/" + name, fs: fsys, folder: !strings.HasSuffix(name, MessageEnd)}
	return t, t.read()
}

// Has reports whether a file is in the item.
func (t *Trashed) Has(name string) bool {
	_, err := t.fs.Lstat(t.Path + "/" + name)
	return err == nil
}

// HoldsMore reports whether something is in the item's folder that is not spent.
func (t *Trashed) HoldsMore(spent func(name string) bool) (bool, error) {
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

func (t *Trashed) there() bool {
	_, err := t.fs.Lstat(t.Path)
	return err == nil
}

func (t *Trashed) read() error {
	b, err := t.head()
	if err != nil {
		return err
	}
	var item TrashItem
	if err := json.Unmarshal(b, &item); err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	switch {
	case item.Version != trashVersion:
		return fmt.Errorf("%w: %s is %q, wanted %q", ErrVersion, t.Path, item.Version, trashVersion)
	case item.RemovedAt.IsZero() || !writable(item.RemovedAt) || item.Kind == "":
		return fmt.Errorf("%s does not say what it is", t.Path)
	}
	item.Envelope = nil
	t.Item = item
	return nil
}

// head returns what says what the item is.
func (t *Trashed) head() ([]byte, error) {
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
	return vfs.ReadFile(t.fs, t.Path, maxItem) // what we wrote has it in its beginning
}

// Envelope reads the envelope of a version, byte for byte.
func (t *Trashed) Envelope() ([]byte, error) {
	b, err := vfs.ReadFile(t.fs, t.Path, MaxMessage)
	if err != nil {
		return nil, err
	}
	var item TrashItem
	if err := json.Unmarshal(b, &item); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	return item.Envelope, nil
}

// Size is what the item takes, in bytes of its files.
func (t *Trashed) Size() int64 {
	if t.folder {
		return vfs.TreeSize(t.fs, t.Path)
	}
	if info, err := t.fs.Lstat(t.Path); err == nil {
		return info.Size()
	}
	return 0
}

// Since is when the item was removed. Of one that does not say it, it is the later one of the times that its name and its
// folder tell.
func (t *Trashed) Since() time.Time {
	if t.Problem == nil {
		return t.Item.RemovedAt
	}
	at := TimeOf(t.ID)
	if info, err := t.fs.Lstat(t.Path); err == nil && info.ModTime().After(at) {
		at = info.ModTime()
	}
	return at
}

// TimeOf is the time that an item's id tells, the zero time where it tells none. No item was removed before that.
func TimeOf(id uuid.UUID) time.Time {
	if id.Version() != 7 {
		return time.Time{}
	}
	return time.Unix(id.Time().UnixTime())
}

// Purge removes the item for good. Nobody else purges in this trash, or restores from it, meanwhile.
//
// Crash order: a folder gets a name that begins with a dot first, durably, so that half an item is never taken for a whole one; what
// is left under that name SweepTrash removes.
func (t *Trashed) Purge() error {
	if !t.folder {
		return t.fs.Remove(t.Path)
	}
	going := Trash + "/." + t.ID.String()
	if err := vfs.RemoveAll(t.fs, going); err != nil {
		return err
	}
	if err := t.fs.Rename(t.Path, going); err != nil {
		return err
	}
	if err := t.fs.SyncDir(Trash); err != nil {
		return err
	}
	return vfs.RemoveAll(t.fs, going)
}

// SweepTrash removes what was left half-made or half-purged in a trash: names that begin with a dot. The caller excludes
// others who make such. What cannot be removed keeps nothing else here.
func SweepTrash(fsys vfs.FS, entries []fs.DirEntry) error {
	var failed error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			failed = errors.Join(failed, vfs.RemoveAll(fsys, Trash+"/"+e.Name()))
		}
	}
	return failed
}
