package context

import (
	"bytes"
	stdcontext "context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Folder is an open branch folder.
type Folder struct {
	handles.Use
	vfs.FS
	dir  *Dir
	name string
	self fs.FileInfo
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
func (d *Dir) MetadataStamp() Stamp { return d.stampOf(MetadataFile) }

func (d *Dir) stampOf(name string) Stamp {
	info, err := d.FS.Lstat(name)
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

// settling is how long a file that ends too early may be one that somebody is writing.
const settling = 10 * time.Second

// IsMetadataBeingWritten reports whether metadata.json ends too early and has just changed. Many programs save a file by
// emptying it and writing it again; if the file was replaced meanwhile, what they write is lost.
func (d *Dir) IsMetadataBeingWritten() bool {
	b, info, err := vfs.ReadStat(d.FS, MetadataFile, MaxMetadata)
	if err != nil || time.Since(info.ModTime()).Abs() > settling {
		return false
	}
	var value json.RawMessage
	err = json.NewDecoder(bytes.NewReader(b)).Decode(&value)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// IsBlankMetadata reports whether metadata.json is empty or has nothing but zero bytes, as after a crash.
func (d *Dir) IsBlankMetadata() bool {
	b, err := vfs.ReadFile(d.FS, MetadataFile, MaxMetadata)
	return err == nil && len(bytes.Trim(b, "\x00")) == 0
}
