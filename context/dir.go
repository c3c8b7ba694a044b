package context

import (
	stdcontext "context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/ctxdir/ctxdir/internal/held"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Dir is the open folder of one context.
type Dir struct {
	ID    uuid.UUID
	Store uuid.UUID // the store's id
	FS    vfs.FS    // the folder; it stays the same folder when it is renamed

	store vfs.FS
	self  fs.FileInfo

	// Lock excludes other writers: it is held to append, to change metadata, to rotate journals.
	Lock vfs.Lock
	// FoldLock excludes other folds and rebuilds. Who needs both takes it first.
	FoldLock vfs.Lock

	subs held.Things[string, *Folder] // folders in messages/

	mu       sync.Mutex
	renaming *Renaming
	assumed  *Metadata
}

// Open opens the folder of a context in a store. It reads nothing in it.
func Open(store vfs.FS, storeID, id uuid.UUID) (*Dir, error) {
	name := id.String()
	self, err := store.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !self.IsDir() {
		return nil, fmt.Errorf("%w: %s", ErrNotExist, id)
	}
	if err != nil {
		return nil, err
	}
	sub, err := store.Sub(name)
	if errors.Is(err, fs.ErrNotExist) { // it was moved since
		return nil, fmt.Errorf("%w: %s", ErrNotExist, id)
	}
	if err != nil {
		return nil, err
	}
	return &Dir{
		ID: id, Store: storeID, FS: sub, store: store, self: self,
		Lock:     store.Lock(Locks + "/" + name),
		FoldLock: store.Lock(Locks + "/" + name + ".fold"),
	}, nil
}

// Close lets go of the folder.
func (d *Dir) Close() error {
	d.subs.Clear()
	return errors.Join(d.Lock.Close(), d.FoldLock.Close(), d.FS.Close())
}

// SyncFailures is the count to begin with for SyncAll: see there.
func (d *Dir) SyncFailures() uint64 { return d.store.SyncFailures() }

// SyncAll makes durable what was written to the context and to the store's blobs. The kernel reports a failed write once. So each caller keeps a count:
// SyncAll also fails if another caller in the store got a report since the count was set.
func (d *Dir) SyncAll(failures *uint64) error {
	err := d.store.SyncAll()
	before := *failures
	if *failures = d.store.SyncFailures(); err == nil && *failures != before {
		err = fmt.Errorf("an earlier write to the file system failed: %w", syscall.EIO)
	}
	return err
}

// Check makes sure that the folder held is the one that bears the context's name now. Otherwise it
// fails with ErrGone: what a moved handle wrote nobody would find.
func (d *Dir) Check() error {
	now, err := d.store.Lstat(d.ID.String())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !vfs.SameFile(now, d.self) {
		return fmt.Errorf("%w: %s", ErrGone, d.ID)
	}
	return err
}

// Stamp identifies a version of metadata.json without reading it.
type Stamp struct{ info fs.FileInfo }

// Same reports whether two stamps are of one version: an atomic replacement is another file, an edit in
// place has another time or size.
func (s Stamp) Same(t Stamp) bool {
	return s.info != nil && t.info != nil && vfs.SameFile(s.info, t.info) &&
		s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime())
}

// MetadataStamp is the stamp of metadata.json as it is now; the zero Stamp, which is the same as no
// other, when there is none.
func (d *Dir) MetadataStamp() Stamp {
	info, err := d.FS.Lstat(MetadataFile)
	if err != nil {
		return Stamp{}
	}
	return Stamp{info}
}

// ReadMetadata reads metadata.json. Its errors name the file and wrap ErrMetadata, ErrVersion or an
// error of the file system.
func (d *Dir) ReadMetadata() (*Metadata, Stamp, error) {
	fail := func(err error) (*Metadata, Stamp, error) {
		return nil, Stamp{}, fmt.Errorf("%s/%s: %w", d.ID, MetadataFile, err)
	}
	f, err := d.FS.OpenFile(MetadataFile, os.O_RDONLY)
	if vfs.IsShortage(err) {
		return fail(err)
	}
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrMetadata, err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	b, err := vfs.ReadOpened(f, info, MetadataFile, MaxMetadata)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrMetadata, err))
	}
	m, err := ParseMetadata(b)
	if err != nil {
		return fail(err)
	}
	if m.ID != d.ID {
		return fail(fmt.Errorf("%w: it is the metadata of context %s", ErrMetadata, m.ID))
	}
	return m, Stamp{info}, nil
}

// FoldersOf returns where the files of a line may be as metadata.json has it now: in one folder, or while that is being renamed in either of
// two, the one before first. It returns none where metadata.json cannot be read.
func (d *Dir) FoldersOf(line uuid.UUID) []string {
	m, _, err := d.ReadMetadata()
	if err != nil {
		return nil
	}
	ln, ok := m.Line(line)
	switch {
	case !ok:
		return nil
	case m.Renaming != nil && m.Renaming.To == ln.Folder:
		return []string{m.Renaming.From, ln.Folder}
	}
	return []string{ln.Folder}
}

// Assume gives what serves in place of metadata.json while that and every copy of it cannot be used.
func (d *Dir) Assume(m *Metadata) { d.assumed = m }

// UsableMetadata returns metadata.json, or where that cannot be used, the copy, or what was assumed.
func (d *Dir) UsableMetadata(copied json.RawMessage) (*Metadata, error) {
	m, _, err := d.ReadMetadata()
	if err == nil {
		return m, nil
	}
	if copied != nil {
		if m, cerr := ParseMetadata(copied); cerr == nil {
			return m, nil
		}
	}
	if d.assumed != nil {
		return d.assumed, nil
	}
	return nil, err
}

// WriteMetadata replaces metadata.json, durably. The caller holds the lock.
//
// Crash order: before the rename the old file counts, after it the new one; either is whole. Whether the
// rename outlived a power cut is certain only after the folder's fsync, which is the commit.
func (d *Dir) WriteMetadata(m *Metadata) (Stamp, error) {
	if err := m.validate(); err != nil {
		return Stamp{}, fmt.Errorf("%w: refusing to write it: %w", ErrMetadata, err)
	}
	b, err := m.Encode()
	if err != nil {
		return Stamp{}, err
	}
	if err := d.FS.Replace(MetadataFile, b); err != nil {
		return Stamp{}, err
	}
	if err := d.FS.SyncDir("."); err != nil {
		return Stamp{}, err
	}
	return d.MetadataStamp(), nil
}

// Begin is what Create needs to know beside the metadata: the first journal and index, made by package
// index, which this one does not know.
type Begin struct {
	Files map[string][]byte // name in the folder, content
}

// Create makes the folder of a context whole or not at all: it is staged, made durable and renamed. It
// fails with ErrExist when the id is taken.
//
// Crash order: until the rename there is only a folder in staging/, which SweepStaging removes; after it the
// whole context, whose files are durable already. It is certain once the store's folder is synced, which
// is the last step.
func Create(ctx stdcontext.Context, store vfs.FS, m *Metadata, begin Begin) error {
	name := m.ID.String()
	lock := store.Lock(Locks + "/" + name)
	defer lock.Close()
	// The lock says that the staging folder is in use, to a sweep and to another creation of this id.
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	defer lock.Release()
	if _, err := store.Lstat(name); err == nil {
		return fmt.Errorf("%w: %s", ErrExist, m.ID)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	staged := Staging + "/" + name
	if err := vfs.RemoveAll(store, staged); err != nil {
		return err
	}
	err := stage(store, staged, m, begin)
	if err == nil {
		if err = store.Rename(staged, name); err == nil {
			if err = store.SyncDir("."); err != nil {
				// Nobody may go on with a context whose name a crash can take away. If this fails as well, it is the name's that is not durable.
				_ = store.Rename(name, staged)
			}
		}
	}
	if err != nil {
		_ = vfs.RemoveAll(store, staged)
	}
	return err
}

func stage(store vfs.FS, staged string, m *Metadata, begin Begin) error {
	encoded, err := m.Encode()
	if err != nil {
		return err
	}
	for _, dir := range []string{staged, staged + "/" + Messages} {
		if err := store.Mkdir(dir); err != nil {
			return err
		}
	}
	if err := vfs.WriteSynced(store, staged+"/"+MetadataFile, encoded); err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(begin.Files)) {
		content := begin.Files[file]
		if err := vfs.WriteSynced(store, staged+"/"+file, content); err != nil {
			return err
		}
	}
	return store.SyncDir(staged)
}

// RawMetadata is the object of metadata.json as it goes into a journal.
func RawMetadata(m *Metadata) json.RawMessage { return mustMarshal(m) }
