// Package ctxdir keeps the conversations of language-model agents as plain files: Maildir for agent contexts.
//
// A store is a folder. Each context, one conversation with its branches, is a folder in it; each message
// is a file. [Open] opens a store, [Store.Create] and [Store.Context] give a [Context], and its [Branch]es
// append, range and fork:
//
//	s, err := ctxdir.Open(dir)
//	c, err := s.Context(ctx, id)
//	b := c.Active()
//	at, err := b.Append(ctx, ctxdir.Draft{Body: body})
//	for m, err := range b.Messages(ctx) { … }
//
// A line is an append-only sequence of messages; a branch is a name that points at a line. Forking begins a new
// line at a position of another one and copies nothing. No operation on one branch changes what another one
// shows, and none destroys a message.
//
// When an append returns, the message is durable: one fdatasync of the context's journal has covered it.
// Other processes may append to the same context at the same time. Readers take no lock; they may see a
// message shortly before it is durable.
//
// The format on disk is described in docs/FORMAT.md, what is promised and how in docs/DESIGN.md.
package ctxdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

const (
	storeFile    = "ctxdir.json"
	storeVersion = "store/1"
	maxStoreFile = 1 << 20
	storeLock    = ctxfolder.Locks + "/store" // held by who makes the store, and by who sets something aside in it
)

// Store is an open store. It can be used by several goroutines, and the folder by several processes.
type Store struct {
	fs       vfs.FS
	path     string
	id       uuid.UUID
	opts     options
	pool     *loader.Pool
	blobs    *blob.Store
	settings settings
	readOnly bool
	besides  *besides // in a dry run of an erase
	problem  error    // why ctxdir.json cannot be used
}

// storeInfo is the content of ctxdir.json.
type storeInfo struct {
	Version   string    `json:"ctxdir"`
	ID        uuid.UUID `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Features  features  `json:"features"`
	Settings  settings  `json:"settings"`
}

// settings are what a store says about itself. Members that are not known are kept by who rewrites the file.
type settings struct {
	TextThreshold *int64 `json:"text_threshold,omitempty"`
}

// features names what a store uses beyond version 1. This program knows none yet.
type features struct {
	Compatible         []string `json:"compatible"`
	ReadOnlyCompatible []string `json:"read_only_compatible"`
	Incompatible       []string `json:"incompatible"`
}

// Init makes dir a store, unless it is one already, and opens it. Missing parent folders are made. It fails with [ErrStoreFile] where contexts lie in dir whose
// ctxdir.json is gone: with another id they would be those of another store.
func Init(dir string, opts ...Option) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, public(Error{Op: "init", Path: dir}, err) }
	if newOptions(opts).fs == nil {
		if err := vfs.MkdirAll(dir); err != nil {
			return fail(err)
		}
	}
	fsys, err := openFS(dir, opts)
	if err != nil {
		return fail(err)
	}
	err = initStore(fsys, settings{newOptions(opts).threshold})
	if cerr := fsys.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err)
	}
	return Open(dir, opts...)
}

// initStore writes what a store consists of. ctxdir.json comes last: without it the folder is no store, and
// Init does the same again.
func initStore(fsys vfs.FS, told settings) error {
	if _, err := readStoreFile(fsys); !errors.Is(err, ErrNoStore) {
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
	if _, err := fsys.Lstat(storeFile); err == nil {
		return nil // another process was faster
	}
	// A collection makes room on a full disk, where it could not make its lock.
	if err := vfs.WriteNew(fsys, collectLock, nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return (&Store{fs: fsys}).writeStoreFile(uuid.New(), told)
}

// makeFolders makes the folders that are empty as a rule, and missing in a copy by a program that knows files only.
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
	if o.fs != nil {
		return o.fs.Sub(".")
	}
	return vfs.OS(dir)
}

// Open opens the store in dir. It fails with [ErrNoStore] when there is none, and with [ErrFormat] when it is
// of another version. A store with features that this program can only read is opened for reading. Where ctxdir.json is damaged, or missing beside contexts, it
// fails with [ErrStoreFile]; for reading only the store opens all the same, and [Store.Problem] says so.
func Open(dir string, opts ...Option) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, public(Error{Op: "open", Path: dir}, err) }
	fsys, err := openFS(dir, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(ErrNoStore)
	}
	if err != nil {
		return fail(err)
	}
	s := &Store{fs: fsys, path: dir, opts: newOptions(opts)}
	if err := s.readInfo(); err != nil {
		_ = fsys.Close()
		return fail(err)
	}
	s.pool = loader.NewPool(s.opts.pool)
	s.blobs = blob.Open(s.fs, blob.SetAside(s.setAside))
	if !s.readOnly {
		// A file system that cannot be written to has no need of the folders, nor of sweeping away what a
		// creation left behind that did not finish.
		if makeFolders(s.fs) == nil {
			_ = ctxfolder.SweepStaging(s.fs)
		}
	}
	return s, nil
}

func (s *Store) readInfo() error {
	info, err := readStoreFile(s.fs)
	if errors.Is(err, ErrStoreFile) && s.opts.readOnly {
		s.problem = err
		info.ID, err = toldID(s.fs, fewContexts)
	}
	if err != nil {
		return err
	}
	s.readOnly = s.opts.readOnly || len(info.Features.ReadOnlyCompatible) > 0
	s.id, s.settings = info.ID, info.Settings
	return nil
}

// Close lets go of the store. Contexts are to be closed before.
func (s *Store) Close() error { return s.fs.Close() }

// Path is the folder the store was opened with.
func (s *Store) Path() string { return s.path }

// ID is the store's own id.
func (s *Store) ID() uuid.UUID { return s.id }

// Delete moves a whole context, a legacy one too, to the store's trash. It waits for writers, and fails with [ErrNotExist].
//
// Crash order: the item's note is durable before the context's folder is renamed into it. Before the rename
// the context is there, after it in trash; the syncs of both folders make it certain.
func (s *Store) Delete(ctx context.Context, id uuid.UUID) (Trashed, error) {
	t, err := s.delete(ctx, id)
	return t, public(Error{Op: "delete", Context: id}, err)
}

// Trashed is something in a trash: where it went, or where it is.
type Trashed struct {
	Context   uuid.UUID
	Path      string // relative to the store
	Bytes     int64  // of the files
	Reason    string
	Item      uuid.UUID // its id, for [Store.Restore] and [Store.Purge]
	Kind      string    // "context", "line", "version", "blobs", "tail", "damaged"; empty when it does not say
	Name      string    // of the thing: a branch's name, a file's
	RemovedAt time.Time
	Problem   error // why the item does not say what it is, or cannot be brought back
}

func (s *Store) delete(ctx context.Context, id uuid.UUID) (Trashed, error) {
	if s.readOnly {
		return Trashed{}, ErrReadOnly
	}
	if s.Legacy(id) == LegacyFile {
		return s.deleteLegacy(ctx, id)
	}
	dir, err := ctxfolder.Open(s.fs, s.id, id)
	if err != nil {
		return Trashed{}, err
	}
	defer dir.Close()
	if err := s.acquire(ctx, dir.Lock); err != nil {
		return Trashed{}, err
	}
	defer dir.Lock.Release()
	return s.deleteLocked(ctx, dir)
}

// deleteLocked is delete for who holds the context's lock.
func (s *Store) deleteLocked(ctx context.Context, dir *ctxfolder.Dir) (Trashed, error) {
	if err := dir.Check(); err != nil {
		return Trashed{}, err
	}
	id := dir.ID
	return s.moveToTrash(ctxfolder.TrashItem{Name: id.String(), Context: id, RemovedAt: s.latest(ctx, id)}, vfs.TreeSize(dir.FS, "."))
}

// moveToTrash moves a context, or a legacy one, by its name in the store. The context's lock is held.
func (s *Store) moveToTrash(removed ctxfolder.TrashItem, size int64) (Trashed, error) {
	removed.Kind = ctxfolder.TrashContext
	item, err := ctxfolder.IntoTrash(s.fs, removed, func(folder string) error { return s.fs.Rename(removed.Name, folder+"/"+removed.Name) })
	if err != nil {
		return Trashed{}, err
	}
	return Trashed{
		Context: removed.Context, Path: item + "/" + removed.Name, Bytes: size, Reason: "removed",
		Item: itemID(item), Kind: removed.Kind, Name: removed.Name, RemovedAt: removed.RemovedAt,
	}, s.fs.SyncDir(".")
}

// acquire takes a lock within the time the options give.
func (s *Store) acquire(ctx context.Context, lock vfs.Lock) error {
	return s.within(ctx, lock.Acquire)
}

// acquireShared is acquire for who can share the lock.
func (s *Store) acquireShared(ctx context.Context, lock vfs.Lock) error {
	return s.within(ctx, lock.AcquireShared)
}

func (s *Store) within(ctx context.Context, acquire func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.lockTimeout)
	defer cancel()
	err := acquire(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: waited %v", ErrLocked, s.opts.lockTimeout)
	}
	return err
}

// IDs yields the ids of the contexts in the store, in no particular order, without those of legacy ones.
func (s *Store) IDs() iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for e, err := range s.entries() {
			if err == nil && (!e.folder || isSplit(s.fs, e.id.String())) {
				continue
			}
			if !yield(e.id, err) || err != nil {
				return
			}
		}
	}
}

// Resolve returns the context that a full id, or a unique beginning or end of one, names; legacy ones in the store too. It fails with
// [ErrNotExist], or with an [*AmbiguousError] that lists what it could be.
func (s *Store) Resolve(ref string) (uuid.UUID, error) {
	fail := func(err error) (uuid.UUID, error) { return uuid.Nil, public(Error{Op: "find", Path: s.path}, err) }
	if id, err := uuid.Parse(ref); err == nil && len(ref) == 36 {
		if info, err := s.fs.Lstat(id.String()); err == nil && info.IsDir() {
			return id, nil
		}
		if _, ok := s.legacyAt(id); ok {
			return id, nil
		}
		// It may be about to get its place, in this moment.
		_ = s.settle(context.Background(), id)
		if info, err := s.fs.Lstat(id.String()); err == nil && info.IsDir() {
			return id, nil
		}
		return fail(fmt.Errorf("%w: context %s", ErrNotExist, ref))
	}
	part := strings.ToLower(ref)
	if part == "" || strings.Trim(part, "0123456789abcdef-") != "" {
		return fail(fmt.Errorf("%w: %q is no context id", ErrInvalid, ref))
	}
	var found []uuid.UUID
	for e, err := range s.entries() {
		if err != nil {
			return fail(err)
		}
		t := e.id.String()
		if !strings.HasPrefix(t, part) && !strings.HasSuffix(t, part) || slices.Contains(found, e.id) {
			continue
		}
		if _, ok := s.legacyAt(e.id); e.folder || ok {
			found = append(found, e.id)
		}
	}
	switch len(found) {
	case 0:
		return fail(fmt.Errorf("%w: no context begins or ends with %q", ErrNotExist, ref))
	case 1:
		return found[0], nil
	}
	slices.SortFunc(found, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return fail(&AmbiguousError{ref, found, "contexts"})
}

// AmbiguousError is returned when a part of an id names several contexts, or items in trash.
type AmbiguousError struct {
	Ref     string
	Matches []uuid.UUID

	of string // what they are
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q could be any of %d %s", e.Ref, len(e.Matches), e.of)
}

// Exists reports whether dir is a store, as far as its ctxdir.json tells.
func Exists(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, storeFile))
	return err == nil && info.Mode().IsRegular()
}
