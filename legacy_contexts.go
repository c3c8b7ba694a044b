package ctxdir

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
)

// LegacyFormat says in which form of the program that came before a context is; empty: in none.
type LegacyFormat = legacy.Format

// Forms of legacy contexts. Both may be of any generation.
const (
	LegacyFile  = legacy.Monolithic // one JSON file
	LegacySplit = legacy.Split      // a folder, its messages in files of their own
)

// Legacy says what the context is that this is a view of: a legacy context that was not migrated. Such a view is read as any other context, and cannot be
// written to: [ErrReadOnly]. Opening it takes as long as migrating it, and as much room until it is closed. It is empty for every other context.
func (c *Context) Legacy() LegacyFormat { return c.legacy }

// Legacy says in which legacy form a context lies in the store that was not migrated; empty when there is none of that id.
func (s *Store) Legacy(id uuid.UUID) LegacyFormat {
	switch name, ok := s.legacyAt(id); {
	case !ok:
		return ""
	case name == id.String():
		return LegacySplit
	}
	return LegacyFile
}

// legacyAt returns what lies in the store in the place of a context of that id.
func (s *Store) legacyAt(id uuid.UUID) (name string, ok bool) {
	if info, err := s.fs.Lstat(id.String()); err == nil && info.IsDir() {
		return id.String(), isSplit(s.fs, id.String())
	}
	name = id.String() + ".json"
	if info, err := s.fs.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	format, err := legacy.Detect(s.fs, name)
	return name, err == nil && format == legacy.Monolithic
}

// isSplit reports whether a folder in the store is a split context.
func isSplit(fsys vfs.FS, name string) bool {
	format, err := legacy.Detect(fsys, name)
	return err == nil && format == legacy.Split
}

// openLegacy opens a context that could not be opened as one, in case a legacy one lies there. why is returned when there is none.
func (s *Store) openLegacy(ctx context.Context, id uuid.UUID, why error) (c *Context, err error) {
	name, ok := s.legacyAt(id)
	switch {
	case !ok:
		err = why
	case s.opts.keepLegacy || s.readOnly:
		c, err = s.view(ctx, id, name)
	default:
		if err = s.migrateInStore(ctx, name); err == nil {
			return s.open(ctx, id)
		}
	}
	if err != nil {
		if c, oerr := s.open(ctx, id); oerr == nil { // another process has migrated it meanwhile
			return c, nil
		}
	}
	return c, err
}

// view shows a legacy context as one: as it would be if it were migrated, in a temporary store.
func (s *Store) view(ctx context.Context, id uuid.UUID, name string) (*Context, error) {
	text := name
	if name == id.String() {
		text += "/" + legacy.ContextFile
	}
	src, err := legacy.Open(s.fs, name, legacy.Options{Limit: s.opts.maxMessage, Stop: ctx.Err})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	info, err := s.fs.Lstat(text)
	if err != nil {
		return nil, err
	}
	in, remove, err := scratchStore(s)
	if err != nil {
		return nil, err
	}
	st := &stagingLegacy{to: in, src: src, id: id, at: info.ModTime()}
	err = st.run(ctx)
	if err == nil {
		err = in.fs.Rename(ctxfolder.StagingFolder(id), id.String())
	}
	var c *Context
	if err == nil {
		c, err = in.open(ctx, id)
	}
	if err != nil {
		remove()
		return nil, err
	}
	in.readOnly = true
	c.legacy, c.release = src.Format, remove
	return c, nil
}

// deleteLegacy is delete for a legacy context that is a file.
func (s *Store) deleteLegacy(ctx context.Context, id uuid.UUID) (Trashed, error) {
	lock := s.fs.Lock(ctxfolder.Locks + "/" + id.String())
	defer lock.Close()
	if err := s.acquire(ctx, lock); err != nil {
		return Trashed{}, err
	}
	defer lock.Release()
	name := id.String() + ".json"
	info, err := s.fs.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Trashed{}, ErrGone // it was migrated meanwhile
	}
	if err != nil {
		return Trashed{}, err
	}
	return s.moveToTrash(ctxfolder.TrashItem{Name: name, Context: id, RemovedAt: s.now()}, info.Size())
}

// entry is what lies in the store under the id of a context.
type entry struct {
	id     uuid.UUID
	folder bool // a folder, of a context or a split one; else a file
}

// entries yields what may be a context, each id once, in no particular order. One that is migrated meanwhile is there all the time.
func (s *Store) entries() iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		files := map[uuid.UUID]bool{} // and what was migrated, false
		folders := map[uuid.UUID]bool{}
		for e, err := range s.fs.ReadDir(".") {
			if err != nil {
				yield(entry{}, public(Error{Op: "list", Path: s.path}, err))
				return
			}
			if id, ok := ctxfolder.ParseID(e.Name()); ok && e.IsDir() {
				folders[id] = true
				if !yield(entry{id, true}, nil) {
					return
				}
				continue
			}
			if stem, ok := legacy.NamedAfterContext(legacy.Original(e.Name())); ok && e.Type().IsRegular() {
				id := uuid.MustParse(stem)
				files[id] = files[id] || !legacy.IsBackup(e.Name())
			} else if id, ok := ctxfolder.ParseID(legacy.Original(e.Name())); ok && e.IsDir() {
				files[id] = files[id] || false
			}
		}
		for id, file := range files {
			if folders[id] {
				continue
			}
			_ = s.settle(context.Background(), id) // what is wrong is told by who opens it
			info, err := s.fs.Lstat(id.String())
			folder := err == nil && info.IsDir()
			if (folder || file) && !yield(entry{id, folder}, nil) {
				return
			}
		}
	}
}

// legacySummary is the row of a legacy context in a list. ok is false when it is none after all.
func (s *Store) legacySummary(known *summaries, id uuid.UUID, name string) (sum Summary, ok bool) {
	before, _ := s.looksLegacy(name)
	if r := known.known[id]; r != nil && r.Format != "" && r.Files == before {
		r.used = true
		return r.summary(), true
	}
	delete(known.known, id)
	sum.ID = id
	info, err := s.fs.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return sum, false
	}
	if err == nil {
		sum.Format, err = legacy.Detect(s.fs, name)
		if err == nil && !sum.Format.Legacy() {
			return sum, false
		}
		sum.Bytes, sum.CreatedAt, sum.UpdatedAt = info.Size(), info.ModTime().UTC(), info.ModTime().UTC()
	}
	if err == nil {
		err = s.summariseLegacy(&sum, name)
	}
	if err != nil {
		sum.Problem = public(Error{Op: "read", Path: name}, err)
	}
	now, looked := s.looksLegacy(name)
	s.rememberLooking(known, before, now, looked, 0, sum)
	return sum, true
}

func (s *Store) summariseLegacy(sum *Summary, name string) error {
	f, err := legacy.Open(s.fs, name, legacy.Options{Limit: s.opts.maxMessage})
	if err != nil {
		return err
	}
	defer f.Close()
	sum.Title, _ = legacy.Text(f.Members.Get("title"))
	sum.ActiveBranch, _ = legacy.Text(f.Members.Get("active_branch_name"))
	sum.Branches, sum.Messages, sum.Bytes = len(f.Branches), int64(f.Len()), f.Size
	return nil
}
