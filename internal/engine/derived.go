package engine

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// DerivedFolder holds caches of what messages say, such as the search index. It can be removed at any time.
const DerivedFolder = "derived"

// erasureFile is in [DerivedFolder] while messages are removed for good. If the process that made it is gone, files
// of the folder may repeat what the store has lost.
const erasureFile = DerivedFolder + "/erasing"

func (d *derived) lose(contexts []uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = append(d.lost, contexts...)
}

// losses returns the lost contexts and others, each once, and begins again.
func (d *derived) losses(others []uuid.UUID) []uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Concat(d.lost, others)
	d.lost = nil
	all = slices.DeleteFunc(all, func(id uuid.UUID) bool { return id == uuid.Nil }) // what belongs to the store alone
	slices.SortFunc(all, compareIDs)
	return slices.Compact(all)
}

// OnForget sets the function that removes contexts from [DerivedFolder], so that no file there has their terms any
// more. It is called when the store has lost messages of these contexts for good, and before that is acknowledged.
func (s *Store) OnForget(f func(ctx context.Context, contexts []uuid.UUID) error) {
	s.derived.forget.Store(&f)
}

// ForgetDerived removes contexts from [DerivedFolder]. Without a function that can do so, or if it fails, the whole
// folder goes.
func (s *Store) ForgetDerived(ctx context.Context, contexts ...uuid.UUID) error {
	if _, err := s.FS.Lstat(DerivedFolder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if f := s.derived.forget.Load(); f != nil && (*f)(ctx, contexts) == nil {
		return nil
	}
	return s.removeDerived()
}

// removeDerived removes [DerivedFolder], the note last.
func (s *Store) removeDerived() error {
	for e, err := range s.FS.ReadDir(DerivedFolder) {
		if err != nil {
			break // no folder
		}
		if e.Name() == path.Base(erasureFile) {
			continue
		}
		if err := vfs.RemoveAll(s.FS, DerivedFolder+"/"+e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.derived.noted.Store(false)
	err := vfs.RemoveAll(s.FS, DerivedFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.FS.SyncDir(".")
	}
	return err
}

// ContextState is the state of a context's files at one look. Every commit changes it; an edit of a message by hand
// does not.
type ContextState struct {
	Log   string       // the newest log
	Files [3]FileState // the folder, metadata.json and the log
	At    int64        // when they were looked at, nanoseconds since 1970
}

// Metadata returns the part of the state that an edit of metadata.json changes, and a seal does not.
func (s *ContextState) Metadata() any { return s.Files[1] }

// IsCurrent reports whether nothing can have been committed to a context since an earlier look.
func (s *Store) IsCurrent(id uuid.UUID, was *ContextState) bool {
	if was == nil || was.Log == "" {
		return false
	}
	for _, f := range was.Files {
		if was.At-f.At < int64(ResolutionOf(f.At)) {
			return false // a later change can look the same
		}
	}
	now, ok := s.FileStates(id, was.Log)
	return ok && now == was.Files
}

// Changes returns the contexts of the store, without legacy ones, and says of each whether something may have been
// committed to it since an earlier look. It opens no context.
func (s *Store) Changes(ctx context.Context, known map[uuid.UUID]*ContextState) (map[uuid.UUID]bool, error) {
	var ids []uuid.UUID
	for e, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		if e.Folder {
			ids = append(ids, e.ID)
		}
	}
	changed, legacy := make([]bool, len(ids)), make([]bool, len(ids))
	InParallel(len(ids), func(i int) {
		if ctx.Err() == nil {
			changed[i] = !s.IsCurrent(ids[i], known[ids[i]])
			legacy[i] = changed[i] && IsSplit(s.FS, ids[i].String())
		}
	})
	all := make(map[uuid.UUID]bool, len(ids))
	for i, id := range ids {
		if !legacy[i] {
			all[id] = changed[i]
		}
	}
	return all, ctx.Err()
}

// State returns the state of the context's files. What the context shows after the next refresh is at least as new.
func (c *Context) State() (is ContextState) {
	log, err := c.Index.NewestLog()
	if err != nil || log == "" {
		return is
	}
	files, ok := c.Store.FileStates(c.Dir.ID, log)
	if !ok {
		return is
	}
	return ContextState{Log: log, Files: files, At: c.Store.Now().UnixNano()}
}

// Spans returns the messages that a branch, or a removed line in its grace period, shows: for each line its own ones.
func (c *Context) Spans(m *Metadata) (spans []loader.Span, err error) {
	all, _, err := c.Index.AllCounts()
	if err != nil {
		return nil, err
	}
	reach := branch.Reach(m)
	for i := range m.Lines {
		l := &m.Lines[i]
		end := min(reach[l.ID], all[l.ID].End())
		if end > l.Base {
			spans = append(spans, loader.Span{Line: l.ID, Folder: l.Folder, From: l.Base, To: end})
		}
	}
	return spans, nil
}
