// Package engine implements an open store and an open context: appends, reads, branches, references and locks. The
// packages trash, erase, follow, migrate and backup use it. The root package wraps all of them in the public API.
//
// A store is a folder. Each context, a conversation with its branches, is a folder in it. Each message is a file.
// [Open] opens a store, [Store.Create] and [Store.Context] return a [Context], and its branches append, read and fork:
//
//	s, err := engine.Open(dir)
//	c, err := s.Context(ctx, id)
//	b := c.Active()
//	at, err := b.Append(ctx, engine.Draft{Body: body})
//	for m, err := range b.Messages(ctx) { … }
//
// A line is an append-only sequence of messages. A branch is a name that points at a line. A fork begins a new line at
// a position of another line and copies nothing. No operation on one branch changes what another branch shows, and none
// destroys a message.
//
// When an append returns, the message is durable: one fdatasync of the context's log has covered it. Other
// processes may append to the same context at the same time. Readers take no lock. A reader may see a message shortly
// before it is durable.
//
// docs/FORMAT.md describes the format on disk, docs/DESIGN.md the promises and how the engine keeps them.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/storefile"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// storeLock is held to make the store and to set a file of it aside.
const storeLock = ctxfolder.Locks + "/store"

// Store is an open store. Several goroutines may use it, and several processes may open the folder.
type Store struct {
	FS         vfs.FS
	path       string
	id         uuid.UUID
	Options    Options
	Pool       *loader.Pool
	Blobs      *blob.Store
	settings   Settings
	ReadOnly   bool
	Exclusions *Exclusions // set in the dry run of an erase
	problem    error       // why ctxdir.json is unusable
	handles    *handles
	projector  *projector
	derived    *derived
	cut        *cutHook
}

// Init makes dir a store, unless it is one already, and opens it. It makes missing parent folders. It fails with
// [ErrStoreFile] where dir holds contexts but no ctxdir.json: under a new id they would belong to another store.
func Init(dir string, opts ...Option) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, Wrap(Error{Op: "init", Path: dir}, err) }
	if newOptions(opts).FS == nil {
		if err := vfs.MkdirAll(dir); err != nil {
			return fail(err)
		}
	}
	fsys, err := openFS(dir, opts)
	if err != nil {
		return fail(err)
	}
	err = initStore(fsys, Settings{TextThreshold: newOptions(opts).threshold})
	if cerr := fsys.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err)
	}
	return Open(dir, opts...)
}

// initStore writes the files and folders of a new store. ctxdir.json comes last: without it the folder is not a store, and
// the next Init starts over.
func initStore(fsys vfs.FS, values Settings) error {
	if _, err := storefile.Read(fsys); !errors.Is(err, ErrNoStore) {
		return err
	}
	if err := makeFolders(fsys); err != nil {
		return err
	}
	lock := fsys.Lock(storeLock)
	defer lock.Close()
	if err := lock.Acquire(context.Background()); err != nil {
		return err
	}
	defer lock.Release()
	if _, err := fsys.Lstat(StoreFile); err == nil {
		return nil // another process made it first
	}
	// The lock file exists from the start, so that a collection can free space on a full disk.
	if err := vfs.WriteNew(fsys, CollectionLock, nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := vfs.WriteNew(fsys, ".gitignore", []byte(gitIgnore)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return storefile.Write(fsys, uuid.New(), values)
}

// gitIgnore keeps locks, caches and unfinished work out of a repository. A person may change it.
const gitIgnore = `# Every machine makes these anew.
/locks/
/staging/
/derived/
/summaries.changes
/summaries.jsonl
`

// makeFolders makes the folders that are usually empty. A program that copies only files loses them.
func makeFolders(fsys vfs.FS) error {
	for _, dir := range []string{ctxfolder.Locks, ctxfolder.Staging, ctxfolder.Trash} {
		if err := fsys.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func openFS(dir string, opts []Option) (vfs.FS, error) {
	o := newOptions(opts)
	if o.FS != nil {
		return o.FS.Sub(".")
	}
	fsys, err := vfs.OS(dir)
	if err == nil && o.through != nil {
		fsys = o.through(fsys)
	}
	return fsys, err
}

// Open opens the store in dir. It fails with [ErrNoStore] when dir is not a store, and with [ErrFormat] when the store has
// another version. A store with features that this program can only read opens read-only. Where ctxdir.json is damaged,
// or missing beside contexts, Open fails with [ErrStoreFile]. With [ReadOnly] such a store opens, and [Store.Problem]
// reports the error.
func Open(dir string, opts ...Option) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, Wrap(Error{Op: "open", Path: dir}, err) }
	fsys, err := openFS(dir, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(ErrNoStore)
	}
	if err != nil {
		return fail(err)
	}
	s := &Store{
		FS: fsys, path: dir, Options: newOptions(opts), handles: &handles{}, projector: &projector{},
		derived: &derived{},
		cut:     &cutHook{},
	}
	if err := s.readInfo(); err != nil {
		_ = fsys.Close()
		return fail(err)
	}
	pool := s.Options.Pool
	if size := s.settings.CacheSize; size > 0 && !s.Options.pooled {
		pool = min(size, maxPool)
	}
	s.Pool = loader.NewPool(pool)
	s.Blobs = blob.Open(s.FS, blob.SetAside(s.SetAside))
	if !s.ReadOnly {
		// On a read-only file system makeFolders fails. Such a store needs neither the folders nor a sweep of
		// unfinished creations.
		if makeFolders(s.FS) == nil {
			_ = ctxfolder.SweepStaging(s.FS)
			_ = s.FinishErasure()
		}
	}
	return s, nil
}

func (s *Store) readInfo() error {
	info, err := storefile.Read(s.FS)
	if errors.Is(err, ErrStoreFile) && s.Options.readOnly {
		s.problem = err
		info.ID, err = storefile.RecordedID(s.FS, maxContextsAtOpen)
	}
	if err != nil {
		return err
	}
	s.ReadOnly = s.Options.readOnly || len(info.Features.ReadOnlyCompatible) > 0
	s.id, s.settings = info.ID, info.Settings
	return nil
}

// In returns the same store in another folder: a context in a trash item opens there.
func (s *Store) In(fsys vfs.FS) *Store {
	in := *s
	in.FS, in.handles = fsys, &handles{}
	return &in
}

// Close closes the contexts of [Store.Use], waits for pending message files, and releases the store. Close other
// contexts first.
func (s *Store) Close() error {
	err := s.handles.close()
	s.projector.run(writers)
	return errors.Join(err, s.FS.Close())
}

// Path returns the path with which the store was opened.
func (s *Store) Path() string { return s.path }

// ID returns the store's id.
func (s *Store) ID() uuid.UUID { return s.id }

// Acquire takes a lock within the configured lock timeout.
func (s *Store) Acquire(ctx context.Context, lock vfs.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ok, err := lock.TryAcquire(); ok || err != nil { // without the cost of a timer
		return err
	}
	return s.AcquireWith(ctx, lock.Acquire)
}

// acquireShared takes a shared lock within the configured lock timeout.
func (s *Store) acquireShared(ctx context.Context, lock vfs.Lock) error {
	return s.AcquireWith(ctx, lock.AcquireShared)
}

// AcquireWith runs acquire, which takes a lock, within the configured lock timeout. It fails with [ErrLocked].
func (s *Store) AcquireWith(ctx context.Context, acquire func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.Options.LockTimeout)
	defer cancel()
	err := acquire(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: waited %v", ErrLocked, s.Options.LockTimeout)
	}
	return err
}

// IDs yields the ids of the contexts in the store, in ascending order, without legacy contexts.
func (s *Store) IDs() iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for e, err := range s.Entries() {
			if err == nil && (!e.Folder || IsSplit(s.FS, e.ID.String())) {
				continue
			}
			if !yield(e.ID, err) || err != nil {
				return
			}
		}
	}
}

// WasRemoved reports whether a context was removed meanwhile: then nothing is wrong with it.
func (s *Store) WasRemoved(id uuid.UUID) bool {
	_, err := s.FS.Lstat(id.String())
	return errors.Is(err, fs.ErrNotExist)
}
