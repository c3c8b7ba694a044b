package engine

import (
	"context"
	"errors"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/storefile"
)

// StoreFile is the name of the file that makes a folder a store.
const StoreFile = storefile.Name

// StoreInfo is its content.
type StoreInfo = storefile.Info

// ErrStoreFile reports that ctxdir.json is damaged, or missing from a folder with contexts. [RepairStore] writes it
// again. Until then the store opens only with [ReadOnly].
var ErrStoreFile = storefile.ErrUnusable

// maxContextsAtOpen bounds the contexts that a read-only open reads to find the store's id.
const maxContextsAtOpen = 64

// Problem returns why the store opened read-only: an error that wraps [ErrStoreFile], nil for a healthy store.
func (s *Store) Problem() error { return Wrap(Error{Op: "open", Path: s.path}, s.problem) }

// FileProblem is [Store.Problem] without the path of the store.
func (s *Store) FileProblem() error { return s.problem }

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
