package ctxdir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// ErrStoreFile: ctxdir.json is missing from a folder with contexts, or damaged. [RepairStore] writes it again; until then the store opens with
// [ReadOnly] alone.
var ErrStoreFile = errors.New(storeFile + " cannot be used")

// Of a ctxdir.json that cannot be parsed, what tells that a newer program wrote it.
var (
	newerStore = regexp.MustCompile(`"ctxdir"\s*:\s*"store/(?:[02-9]|1\d)`)
	newFeature = regexp.MustCompile(`"(?:incompatible|read_only_compatible)"\s*:\s*\[\s*"`)
)

// readStoreFile reads ctxdir.json. Its error is ErrNoStore, or wraps ErrStoreFile, ErrFormat or an error of the file system.
func readStoreFile(fsys vfs.FS) (info storeInfo, err error) {
	b, err := vfs.ReadFile(fsys, storeFile, maxStoreFile)
	there, serr := fsys.Lstat(storeFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(serr, fs.ErrNotExist):
		if !holdsContexts(fsys) {
			return info, ErrNoStore
		}
		return info, fmt.Errorf("%w: it is missing, and there are contexts", ErrStoreFile)
	case errors.Is(err, vfs.ErrTooLarge), serr == nil && !there.Mode().IsRegular():
		return info, fmt.Errorf("%w: %w", ErrStoreFile, err)
	case err != nil:
		return info, err
	}
	b = message.Text(b)
	err = json.Unmarshal(b, &info)
	switch {
	case err == nil && info.Version != storeVersion && strings.HasPrefix(info.Version, "store/"):
		return info, fmt.Errorf("%w: %s is %q, wanted %q", ErrFormat, storeFile, info.Version, storeVersion)
	case err != nil && (newerStore.Match(b) || newFeature.Match(b)):
		return info, fmt.Errorf("%w: %s is damaged, and of a newer program", ErrFormat, storeFile)
	case len(bytes.Trim(b, " \t\r\n\x00")) == 0:
		return info, fmt.Errorf("%w: it is empty", ErrStoreFile)
	case err != nil:
		return info, fmt.Errorf("%w: %w", ErrStoreFile, err)
	case info.Version != storeVersion || info.ID == uuid.Nil:
		return info, fmt.Errorf("%w: it says neither what it is nor the store's id", ErrStoreFile)
	case len(info.Features.Incompatible) > 0:
		return info, fmt.Errorf("%w: the store needs %s", ErrFormat, strings.Join(info.Features.Incompatible, ", "))
	}
	return info, nil
}

// contextFolders yields the names of folders that are contexts, in upper case too.
func contextFolders(fsys vfs.FS, yield func(name string) bool) error {
	for e, err := range fsys.ReadDir(".") {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(strings.ToLower(e.Name())); !ok || !e.IsDir() || !integrity.IsContext(fsys, e.Name()) {
			continue
		}
		if !yield(e.Name()) {
			return nil
		}
	}
	return nil
}

func holdsContexts(fsys vfs.FS) (some bool) {
	_ = contextFolders(fsys, func(string) bool { some = true; return false })
	return some
}

// toldID returns the id of the store that most of its contexts tell, of so many at the most; a new one where none does. Where a context is of a newer program, so
// may the store have been, and the error wraps ErrFormat.
func toldID(fsys vfs.FS, most int) (id uuid.UUID, err error) {
	told := map[uuid.UUID]int{}
	look := func(name string) bool {
		var dir vfs.FS
		if dir, err = fsys.Sub(name); err != nil {
			return false
		}
		defer dir.Close()
		var of uuid.UUID
		if of, err = index.StoreOf(dir); err == nil && of != uuid.Nil {
			told[of]++
		}
		most--
		return err == nil && most > 0
	}
	if lerr := contextFolders(fsys, look); err == nil {
		err = lerr
	}
	for of, n := range told {
		if n > told[id] || n == told[id] && bytes.Compare(of[:], id[:]) < 0 {
			id = of
		}
	}
	if id == uuid.Nil {
		id = uuid.New()
	}
	return id, err
}

// fewContexts are asked for the id of a store that is opened for reading.
const fewContexts = 64

// Problem is why the store can be read only, though it could be opened: it wraps [ErrStoreFile]. nil when nothing is wrong.
func (s *Store) Problem() error { return public(Error{Op: "open", Path: s.path}, s.problem) }

// brokenFile is the finding about ctxdir.json.
func (s *Store) brokenFile() Finding {
	return Finding{Kind: integrity.KindStore, Severity: SeverityError, Path: storeFile, Detail: s.problem.Error(), Repairable: true}
}

// RepairStore writes ctxdir.json again where [Open] fails with [ErrStoreFile]: with the id that the contexts tell, and without settings, which nothing else tells.
// What lies in its place goes to the store's trash. It refuses, with [ErrFormat], where the file or a context is of a newer version. done is false where
// nothing is wrong.
//
// Crash order: what lies there is in the trash before the new file is written. In between there is none, and the contexts tell the same again.
func RepairStore(dir string, opts ...Option) (r Repaired, done bool, err error) {
	fail := func(err error) (Repaired, bool, error) { return r, false, public(Error{Op: "repair", Path: dir}, err) }
	fsys, err := openFS(dir, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(ErrNoStore)
	}
	if err != nil {
		return fail(err)
	}
	defer fsys.Close()
	s := &Store{fs: fsys, path: dir, opts: newOptions(opts)}
	if s.opts.readOnly {
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
	if err := s.acquire(context.Background(), lock); err != nil {
		return fail(err)
	}
	defer lock.Release()
	_, why := readStoreFile(fsys)
	if !errors.Is(why, ErrStoreFile) {
		return fail(why) // somebody was faster
	}
	id, err := toldID(fsys, maxContexts)
	if err == nil {
		err = s.writeStoreFile(id, settings{})
	}
	if err != nil {
		return fail(err)
	}
	return Repaired{Kind: integrity.KindStore, Path: storeFile, Detail: "written again, with the id that the contexts tell; " + why.Error()}, true, nil
}

// maxContexts bounds how many contexts are asked.
const maxContexts = 1 << 30

// writeStoreFile makes ctxdir.json, durably. What lies there goes to trash. The store's lock is held.
func (s *Store) writeStoreFile(id uuid.UUID, told settings) error {
	if _, err := s.fs.Lstat(storeFile); err == nil {
		item := ctxfolder.TrashItem{Kind: ctxfolder.TrashDamaged, Name: storeFile}
		_, err := ctxfolder.IntoTrash(s.fs, item, func(folder string) error { return s.fs.Rename(storeFile, folder+"/"+storeFile) })
		if err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(storeInfo{
		Version: storeVersion, ID: id, CreatedAt: time.Now().UTC(),
		Features: features{[]string{}, []string{}, []string{}}, Settings: told,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := s.fs.Replace(storeFile, append(b, '\n')); err != nil {
		return err
	}
	return s.fs.SyncDir(".")
}
