package context

import (
	"bytes"
	stdcontext "context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/internal/handles"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Dir is the open folder of one context.
type Dir struct {
	ID    uuid.UUID
	Store uuid.UUID // the store's id
	FS    vfs.FS    // the folder; it stays the same folder after a rename

	store vfs.FS
	self  fs.FileInfo

	// Lock excludes other writers. A writer holds it to append, to change metadata and to rotate logs.
	Lock vfs.Lock
	// SealLock excludes others that seal, merge or rewrite segments. A process that needs both locks takes SealLock first.
	SealLock vfs.Lock
	// FilesLock is held shared from a commit until its message files exist, see AwaitFiles.
	FilesLock vfs.Lock

	subs handles.Table[string, *Folder] // folders in messages/
}

// Open opens the folder of a context in a store. It reads no file in it.
func Open(store vfs.FS, storeID, id uuid.UUID) (*Dir, error) {
	name := id.String()
	sub, self, err := vfs.SubStat(store, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotFolder) {
		return nil, fmt.Errorf("%w: %s", ErrNotExist, id)
	}
	if err != nil {
		return nil, err
	}
	return &Dir{
		ID: id, Store: storeID, FS: sub, store: store, self: self,
		Lock:     store.Lock(Locks + "/" + name),
		SealLock: store.Lock(Locks + "/" + name + ".seal"), FilesLock: store.Lock(filesLock(id)),
	}, nil
}

// Close releases the folder.
func (d *Dir) Close() error {
	d.subs.Clear()
	return errors.Join(d.Lock.Close(), d.SealLock.Close(), d.FilesLock.Close(), d.FS.Close())
}

func filesLock(id uuid.UUID) string { return Locks + "/" + id.String() + ".files" }

// AwaitFiles waits until no process is about to make a message file of an earlier commit. A caller that removes message
// files or moves the folder holds the lock, so there is no later commit, and calls AwaitFiles before: otherwise a file
// could appear afterwards.
func (d *Dir) AwaitFiles(ctx stdcontext.Context) error {
	name := filesLock(d.ID)
	if _, err := d.store.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil // no process ever held it, and a full disk has no room for it
	}
	lock := d.store.Lock(name)
	defer lock.Close()
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	return lock.Release()
}

// Check makes sure that the open folder still bears the context's name. Otherwise it fails with ErrGone: no reader
// would find what a moved handle writes.
func (d *Dir) Check() error {
	now, err := d.store.Lstat(d.ID.String())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !vfs.SameFile(now, d.self) {
		return fmt.Errorf("%w: %s", ErrGone, d.ID)
	}
	return err
}

// Has reports whether the open folder still bears the context's name and has a version of metadata.json.
func (d *Dir) Has(s Stamp) bool {
	now, err := vfs.LstatIn(d.store, d.ID.String(), ".", MetadataFile)
	return err == nil && now[0] != nil && vfs.SameFile(now[0], d.self) && Stamp{now[1]}.Same(s)
}

// Stamp identifies a version of metadata.json without reading it.
type Stamp struct{ info fs.FileInfo }

// Same reports whether two stamps identify one version. An atomic replacement is another file; an edit in place has
// another time or size.
func (s Stamp) Same(t Stamp) bool {
	return s.info != nil && t.info != nil && vfs.SameFile(s.info, t.info) &&
		s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime())
}

// MetadataStamp returns the stamp of the present metadata.json. Without one it returns the zero Stamp, which equals no
// other.
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
	b, stamp, err := d.readMetadata()
	if err != nil {
		return nil, Stamp{}, err
	}
	m, err := d.parseMetadata(b)
	if err != nil {
		return nil, Stamp{}, err
	}
	return m, stamp, nil
}

func (d *Dir) metadataError(err error) error { return fmt.Errorf("%s/%s: %w", d.ID, MetadataFile, err) }

func (d *Dir) readMetadata() ([]byte, Stamp, error) {
	b, info, err := vfs.ReadStat(d.FS, MetadataFile, MaxMetadata)
	switch {
	case vfs.IsShortage(err):
		return nil, Stamp{}, d.metadataError(err)
	case err != nil:
		return nil, Stamp{}, d.metadataError(fmt.Errorf("%w: %w", ErrMetadata, err))
	}
	return b, Stamp{info}, nil
}

func (d *Dir) parseMetadata(b []byte) (*Metadata, error) {
	m, err := ParseMetadata(b)
	if err == nil && m.ID != d.ID {
		err = fmt.Errorf("%w: it belongs to context %s", ErrMetadata, m.ID)
	}
	if err != nil {
		return nil, d.metadataError(err)
	}
	return m, nil
}

// EffectiveMetadata returns what counts of the committed metadata, nil for none, and metadata.json: see [Reconcile]. The error
// of an unusable metadata.json comes with ProjectionUnusable.
func (d *Dir) EffectiveMetadata(committed *Metadata) (*Metadata, Projection, Stamp, error) {
	b, stamp, err := d.readMetadata()
	var file *Metadata
	if err == nil {
		if is, ok := committed.recognise(b); ok {
			return committed, is, stamp, nil
		}
		if file, err = d.parseMetadata(b); err != nil {
			stamp = Stamp{}
		}
	}
	switch {
	case err == nil:
		m, is := Reconcile(committed, file)
		return m, is, stamp, nil
	case errors.Is(err, ErrVersion):
		return nil, ProjectionUnusable, stamp, err
	}
	return committed, ProjectionUnusable, stamp, err
}

// errEditedMeanwhile reports that metadata.json is not the file that was looked at.
var errEditedMeanwhile = errors.New("metadata.json changed during the operation")

// ProjectMetadata replaces the metadata.json of a stamp by committed metadata. It syncs nothing, and fails if another
// file is there: a person may have edited it. The caller holds the lock.
//
// Crash order: the log has the metadata, durably. A crash leaves the old file, the new one, or a torn one, whose
// check does not match.
func (d *Dir) ProjectMetadata(m *Metadata, seen Stamp) (Stamp, error) {
	b, err := m.Encode()
	if err != nil {
		return Stamp{}, err
	}
	err = d.replaceView(MetadataFile, b, func() error {
		if now := d.MetadataStamp(); now.info != nil && !now.Same(seen) {
			return errEditedMeanwhile
		}
		return nil
	})
	if err != nil {
		return Stamp{}, err
	}
	return d.MetadataStamp(), nil
}

// ReplaceView replaces a file in the context's folder. It syncs nothing.
//
// Crash order: the file says what the log has. A crash leaves the old one, the new one, or a torn one.
func (d *Dir) ReplaceView(name string, data []byte) error {
	return d.replaceView(name, data, func() error { return nil })
}

func (d *Dir) replaceView(name string, data []byte, may func() error) error {
	if err := d.MakeWay(name); err != nil {
		return err
	}
	tmp := "." + name + ".tmp"
	if err := d.FS.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := vfs.CreateFile(d.FS, tmp, data, time.Now())
	if err == nil {
		err = may()
	}
	if err == nil {
		err = d.FS.Rename(tmp, name)
	}
	if err != nil {
		_ = d.FS.Remove(tmp)
	}
	return err
}

// IsBlankMetadata reports whether metadata.json is empty or has nothing but zero bytes, as after a crash.
func (d *Dir) IsBlankMetadata() bool {
	b, err := vfs.ReadFile(d.FS, MetadataFile, MaxMetadata)
	return err == nil && len(bytes.Trim(b, "\x00")) == 0
}

// WriteMetadata is [Dir.ProjectMetadata], durably: no older file comes back. It is for replacing an edited file, which
// would count as an edit again, and for metadata that no log has. The caller holds the lock.
//
// Crash order: the rename replaces one whole file by another. The rename is durable only after the folder's fsync.
func (d *Dir) WriteMetadata(m *Metadata) (Stamp, error) {
	if err := m.validate(); err != nil {
		return Stamp{}, fmt.Errorf("%w: refused to write invalid metadata: %w", ErrMetadata, err)
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

// Create makes the folder of a context, whole or not at all: it stages the folder, makes it durable and renames it. It
// fails with ErrExist when the id is taken.
//
// Crash order: before the rename there is only a folder in staging/, which SweepStaging removes. After it there is the
// whole context. Its log is durable already; metadata.json is not, and readers do without it. The last step, the sync of
// the store's folder, makes the name durable.
func Create(ctx stdcontext.Context, store vfs.FS, m *Metadata, begin func(folder vfs.FS) error) error {
	name := m.ID.String()
	lock := store.Lock(Locks + "/" + name)
	defer lock.Close()
	// The lock marks the staging folder as in use, for a sweep and for another creation of this id.
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	defer lock.Release()
	if err := IsFree(store, m.ID); err != nil {
		return err
	}
	staged := Staging + "/" + name
	if err := vfs.RemoveAll(store, staged); err != nil {
		return err
	}
	err := stage(store, staged, m, begin)
	if err == nil {
		err = PublishNew(store, m.ID)
	}
	if err != nil {
		_ = vfs.RemoveAll(store, staged)
	}
	return err
}

func stage(store vfs.FS, staged string, m *Metadata, begin func(folder vfs.FS) error) error {
	encoded, err := m.Encode()
	if err != nil {
		return err
	}
	if err := store.Mkdir(staged); err != nil {
		return err
	}
	folder, err := store.Sub(staged)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Mkdir(Messages); err != nil {
		return err
	}
	if err := vfs.WriteNew(folder, MetadataFile, encoded); err != nil {
		return err
	}
	if err := begin(folder); err != nil { // last: one commit of the file system serves all
		return err
	}
	return folder.SyncDir(".")
}

// RawMetadata encodes metadata for a journal.
func RawMetadata(m *Metadata) json.RawMessage {
	raw, _ := m.MarshalJSON() // never fails
	return raw
}

// CommittableMetadata is RawMetadata, after checks that readers could use it. m is then what a reader parses.
func CommittableMetadata(m *Metadata) (json.RawMessage, error) {
	if err := m.committable(&Metadata{}); err != nil {
		return nil, err
	}
	raw := RawMetadata(m)
	if len(raw) > MaxMetadata/2 { // metadata.json has indentation
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMetadata, len(raw), MaxMetadata/2)
	}
	m.check = false
	return raw, nil
}

// committable returns an error if readers could not use the metadata, which follows valid metadata, or is the first.
func (m *Metadata) committable(was *Metadata) error {
	if err := m.validateAfter(was); err != nil {
		return fmt.Errorf("%w: refused to write invalid metadata: %w", ErrMetadata, err)
	}
	for _, x := range m.Extra.Members() { // a repeated member would replace the engine's
		known := func(k metadataMember) bool { return k.key == x.Key }
		if x.Key == "ctxdir" || x.Key == sumsMember || slices.ContainsFunc(metadataMembers, known) {
			return fmt.Errorf("%w: refused to write a second %q as an unknown member", ErrMetadata, x.Key)
		}
	}
	return nil
}
