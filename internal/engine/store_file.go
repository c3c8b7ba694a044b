package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// ErrStoreFile reports that ctxdir.json is damaged, or missing from a folder with contexts. [RepairStore] writes it
// again. Until then the store opens only with [ReadOnly].
var ErrStoreFile = errors.New(StoreFile + " is unusable")

// Patterns that show that a newer program wrote an unparsable ctxdir.json.
var (
	newerStore = regexp.MustCompile(`"ctxdir"\s*:\s*"store/(?:[02-9]|1\d)`)
	newFeature = regexp.MustCompile(`"(?:incompatible|read_only_compatible)"\s*:\s*\[\s*"`)
)

// readStoreFile reads ctxdir.json. Its error is ErrNoStore, or wraps ErrStoreFile, ErrFormat or an error of the file
// system.
func readStoreFile(fsys vfs.FS) (info StoreInfo, err error) {
	b, err := vfs.ReadFile(fsys, StoreFile, MaxStoreFile)
	there, serr := fsys.Lstat(StoreFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(serr, fs.ErrNotExist):
		if !holdsContexts(fsys) {
			return info, ErrNoStore
		}
		return info, fmt.Errorf("%w: it is missing, but the folder holds contexts", ErrStoreFile)
	case errors.Is(err, vfs.ErrTooLarge), serr == nil && !there.Mode().IsRegular():
		return info, fmt.Errorf("%w: %w", ErrStoreFile, err)
	case err != nil:
		return info, err
	}
	b = message.Text(b)
	err = json.Unmarshal(b, &info)
	switch {
	case err == nil && info.Version != StoreVersion && strings.HasPrefix(info.Version, "store/"):
		return info, fmt.Errorf("%w: %s is %q, wanted %q", ErrFormat, StoreFile, info.Version, StoreVersion)
	case err != nil && (newerStore.Match(b) || newFeature.Match(b)):
		return info, fmt.Errorf("%w: %s is damaged and was written by a newer program", ErrFormat, StoreFile)
	case len(bytes.Trim(b, " \t\r\n\x00")) == 0:
		return info, fmt.Errorf("%w: it is empty", ErrStoreFile)
	case err != nil:
		return info, fmt.Errorf("%w: %w", ErrStoreFile, err)
	case info.Version != StoreVersion || info.ID == uuid.Nil:
		return info, fmt.Errorf("%w: it has neither a format version nor the store's id", ErrStoreFile)
	case len(info.Features.Incompatible) > 0:
		return info, fmt.Errorf("%w: the store needs %s", ErrFormat, strings.Join(info.Features.Incompatible, ", "))
	}
	return info, nil
}

// contextFolders yields the names of folders that are contexts, also names in upper case.
func contextFolders(fsys vfs.FS, yield func(name string) bool) error {
	for e, err := range fsys.ReadDir(".") {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(strings.ToLower(e.Name())); !ok || !e.IsDir() || !isContext(fsys, e.Name()) {
			continue
		}
		if !yield(e.Name()) {
			return nil
		}
	}
	return nil
}

// isContext reports whether a folder holds a part of a context.
func isContext(store vfs.FS, name string) bool {
	for e, err := range store.ReadDir(name) {
		if err != nil {
			break
		}
		_, log := journal.ParseName(e.Name())
		if log || slices.Contains([]string{ctxfolder.MetadataFile, ctxfolder.Segments, ctxfolder.Messages}, e.Name()) {
			return true
		}
	}
	return false
}

func holdsContexts(fsys vfs.FS) (some bool) {
	_ = contextFolders(fsys, func(string) bool { some = true; return false })
	return some
}

// recordedID returns the store id that most contexts record, from at most limit contexts. Without any it returns a new
// id. Where a context is of a newer program, the error wraps ErrFormat: the store may be newer too.
func recordedID(fsys vfs.FS, limit int) (id uuid.UUID, err error) {
	counts := map[uuid.UUID]int{}
	look := func(name string) bool {
		var dir vfs.FS
		if dir, err = fsys.Sub(name); err != nil {
			return false
		}
		defer dir.Close()
		var of uuid.UUID
		if of, err = index.StoreOf(dir); err == nil && of != uuid.Nil {
			counts[of]++
		}
		limit--
		return err == nil && limit > 0
	}
	if lerr := contextFolders(fsys, look); err == nil {
		err = lerr
	}
	for of, n := range counts {
		if n > counts[id] || n == counts[id] && bytes.Compare(of[:], id[:]) < 0 {
			id = of
		}
	}
	if id == uuid.Nil {
		id = uuid.New()
	}
	return id, err
}

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
	if _, err := readStoreFile(fsys); !errors.Is(err, ErrStoreFile) {
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
	_, why := readStoreFile(fsys)
	if !errors.Is(why, ErrStoreFile) {
		return fail(why) // another process repaired it first
	}
	id, err := recordedID(fsys, maxContextsAtRepair)
	if err == nil {
		err = s.writeStoreFile(id, Settings{})
	}
	if err != nil {
		return fail(err)
	}
	return "rewritten with the id that the contexts record; " + why.Error(), nil
}

// maxContextsAtRepair bounds the contexts that a repair reads.
const maxContextsAtRepair = 1 << 30

// writeStoreFile writes ctxdir.json durably and moves an old one to the trash. The caller holds the store's lock.
func (s *Store) writeStoreFile(id uuid.UUID, values Settings) error {
	if _, err := s.FS.Lstat(StoreFile); err == nil {
		item := ctxfolder.TrashItem{Kind: ctxfolder.TrashDamaged, Name: StoreFile}
		_, err := ctxfolder.IntoTrash(s.FS, item, func(folder string) error { return s.FS.Rename(StoreFile, folder+"/"+StoreFile) })
		if err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(StoreInfo{
		Version: StoreVersion, ID: id, CreatedAt: time.Now().UTC(),
		Features: features{[]string{}, []string{}, []string{}}, Settings: values,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := s.FS.Replace(StoreFile, append(b, '\n')); err != nil {
		return err
	}
	return s.FS.SyncDir(".")
}
