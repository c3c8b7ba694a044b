package engine

import (
	"context"
	"errors"
	"io/fs"
	"path"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/storefile"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

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
	if there, err := vfs.Exists(fsys, StoreFile); err != nil || there {
		return err // another process made it first
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

// Close closes the contexts of [Store.Use], waits for pending message files, and releases the store. Close other
// contexts first.
func (s *Store) Close() error {
	err := s.handles.close()
	s.projector.run(writers)
	return errors.Join(err, s.FS.Close())
}

// RepairStore writes ctxdir.json again where [Open] fails with [ErrStoreFile]. It takes the id from the contexts; the
// settings are lost, since nothing else records them. It moves the old file to the store's trash. It refuses with
// [ErrFormat] where the file or a context has a newer version. It returns what it did, nothing where nothing is wrong.
//
// Crash order: the old file is in the trash before the new one is written. In between the store has none, and the
// contexts still yield the same id.
func RepairStore(dir string, opts ...Option) (done string, err error) {
	fail := func(err error) (string, error) { return "", Wrap(Error{Op: "repair", Path: dir}, err) }
	fsys, err := openFS(dir, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(ErrNoStore)
	}
	if err != nil {
		return fail(err)
	}
	defer fsys.Close()
	s := &Store{FS: fsys, path: dir, Options: newOptions(opts), handles: &handles{}}
	if s.Options.readOnly {
		return fail(ErrReadOnly)
	}
	if _, err := storefile.Read(fsys); !errors.Is(err, ErrStoreFile) {
		return fail(err)
	}
	if err := makeFolders(fsys); err != nil {
		return fail(err)
	}
	lock := fsys.Lock(storeLock)
	defer lock.Close()
	if err := s.Acquire(context.Background(), lock); err != nil {
		return fail(err)
	}
	defer lock.Release()
	_, why := storefile.Read(fsys)
	if !errors.Is(why, ErrStoreFile) {
		return fail(why) // another process repaired it first
	}
	id, err := storefile.RecordedID(fsys, maxContextsAtRepair)
	if err == nil {
		err = storefile.Write(fsys, id, Settings{})
	}
	if err != nil {
		return fail(err)
	}
	return "rewritten with the id that the contexts record; " + why.Error(), nil
}

// maxContextsAtRepair bounds the contexts that a repair reads.
const maxContextsAtRepair = 1 << 30

// maxContextsAtOpen bounds the contexts that a read-only open reads to find the store's id.
const maxContextsAtOpen = 64

// SetAside moves whatever takes the place of a blob, or of a folder of blobs, to the store's trash. The lock admits one
// writer at a time: a slow writer must not move the blob that a faster writer has put there meanwhile.
func (s *Store) SetAside(name string) error {
	lock := s.FS.Lock(storeLock)
	defer lock.Close()
	if err := s.Acquire(context.Background(), lock); err != nil {
		return err
	}
	defer lock.Release()
	info, err := s.FS.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || blob.InOrder(name, info) {
		return err
	}
	base := path.Base(name)
	item := ctxfolder.TrashItem{Kind: ctxfolder.TrashDamaged, Name: base}
	_, err = ctxfolder.IntoTrash(s.FS, item, func(folder string) error { return s.FS.Rename(name, folder+"/"+base) })
	return err
}
