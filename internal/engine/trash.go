package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// DefaultGrace is how long removed things stay in the trash unless the caller says otherwise.
const DefaultGrace = 7 * 24 * time.Hour

// now returns the clock's time for removals and purges.
func (s *Store) now() time.Time { return s.opts.clock() }

// latest returns the present time, or a later one in the context: with a clock that was set back, a new item must not
// look old.
func (s *Store) latest(ctx context.Context, id uuid.UUID) time.Time {
	c, err := s.open(ctx, id)
	if err != nil {
		return s.now()
	}
	defer c.Close()
	return c.latest()
}

func (c *Context) latest() time.Time {
	at := c.dir.Latest(c.store.now())
	for _, l := range c.current().Lines {
		counts, ok, err := c.log.Counts(l.ID)
		if err != nil || !ok || counts.Count == 0 {
			continue
		}
		entries, err := c.log.Entries(l.ID, counts.End()-1, counts.End())
		if err == nil && len(entries) == 1 && entries[0].StoredAt().After(at) {
			at = entries[0].StoredAt()
		}
	}
	return at
}

// itemID returns the id of the item with this path.
func itemID(path string) uuid.UUID {
	id, _ := ctxfolder.ParseID(path[strings.LastIndexByte(path, '/')+1:])
	return id
}

// trashed is an item and its trash. Without an item it stands for the trash.
type trashed struct {
	*ctxfolder.TrashEntry
	in uuid.UUID // the context of the trash, uuid.Nil for the store's
}

func (t *trashed) public() Trashed {
	if t.TrashEntry == nil {
		return Trashed{Context: t.in, Path: trashPath(t.in)}
	}
	x := Trashed{
		Context: t.Item.Context, Path: t.Path, Bytes: t.Size(), Item: t.ID, Kind: t.Item.Kind, Name: t.Item.Name,
		RemovedAt: t.Since(), Problem: t.Problem, Reason: reason(&t.Item),
	}
	if t.in != uuid.Nil {
		x.Context, x.Path = t.in, t.in.String()+"/"+t.Path
	}
	if t.Problem != nil {
		x.Reason = t.Problem.Error()
	}
	return x
}

// reason says why a thing is in trash.
func reason(item *ctxfolder.TrashItem) string {
	switch item.Kind {
	case ctxfolder.TrashContext:
		return "removed"
	case ctxfolder.TrashLine:
		return lineReason(item)
	case ctxfolder.TrashVersion:
		return fmt.Sprintf("message %d was replaced", item.Position)
	case ctxfolder.TrashTail:
		return "torn write, never acknowledged"
	case ctxfolder.TrashDamaged:
		return "damaged, or in the place of another file"
	case ctxfolder.TrashBlobs:
		return "no message refers to it"
	}
	return ""
}

func lineReason(item *ctxfolder.TrashItem) string {
	r := fmt.Sprintf("no branch shows messages %d to %d", item.From, item.To-1)
	if item.From == item.To {
		r = "no branch descends from it"
	}
	if item.Name != "" && item.Why != "" {
		r += fmt.Sprintf(" of %q, which was %s", item.Name, item.Why)
	}
	if item.Missing > 0 {
		r += fmt.Sprintf("; %d unavailable", item.Missing)
	}
	return r
}

// trashPath returns the path of a context's trash in the store, or of the store's own trash for uuid.Nil.
func trashPath(in uuid.UUID) string {
	if in == uuid.Nil {
		return ctxfolder.Trash
	}
	return in.String() + "/" + ctxfolder.Trash
}

// Trash yields the items in the trash of the store and of its contexts, oldest first in each. With contexts it yields
// only their items. A trash that cannot be listed comes with an error, its path and its context, and the others follow.
func (s *Store) Trash(ctx context.Context, contexts ...uuid.UUID) iter.Seq2[Trashed, error] {
	return func(yield func(Trashed, error) bool) {
		for t, err := range s.trash(ctx, contexts, nil) {
			if t == nil {
				yield(Trashed{}, public(Error{Op: "list the trash of", Path: s.path}, err))
				return
			}
			if !yield(t.public(), err) {
				return
			}
		}
	}
}

// onlyFolders leaves out old versions of messages, which can be many.
func onlyFolders(_ uuid.UUID, folder bool) bool { return folder }

// trash yields the wanted items. The trash of an item is open while the caller handles it. An error ends the sequence,
// unless it comes with a [*trashed], which stands for a trash that cannot be listed.
func (s *Store) trash(ctx context.Context, contexts []uuid.UUID, want func(id uuid.UUID, folder bool) bool) iter.Seq2[*trashed, error] {
	return func(yield func(*trashed, error) bool) {
		unlisted := func(in uuid.UUID, err error) bool {
			return yield(&trashed{in: in}, public(Error{Op: "list", Path: trashPath(in)}, err))
		}
		each := func(fsys vfs.FS, in uuid.UUID) bool {
			for t, err := range ctxfolder.EachTrash(fsys, want) {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return false
				}
				if err != nil {
					return unlisted(in, err)
				}
				if in == uuid.Nil && len(contexts) > 0 && !slices.Contains(contexts, t.Item.Context) {
					continue
				}
				if !yield(&trashed{t, in}, nil) {
					return false
				}
			}
			return true
		}
		if !each(s.fs, uuid.Nil) {
			return
		}
		ids := func(yield func(uuid.UUID, error) bool) {
			for _, id := range contexts {
				if !yield(id, nil) {
					return
				}
			}
		}
		if len(contexts) == 0 {
			ids = s.IDs()
		}
		for id, err := range ids {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			sub, err := s.fs.Sub(id.String())
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				if !unlisted(id, err) {
					return
				}
				continue
			}
			more := each(sub, id)
			_ = sub.Close()
			if !more {
				return
			}
		}
	}
}

// ResolveTrashed returns the item that ref names: a full id, or a unique part of one, as for [Store.Resolve]. It fails
// with [ErrNotExist], or with an [*AmbiguousError] that lists the candidates.
func (s *Store) ResolveTrashed(ctx context.Context, ref string) (uuid.UUID, error) {
	fail := func(err error) (uuid.UUID, error) {
		return uuid.Nil, public(Error{Op: "find in trash of", Path: s.path}, err)
	}
	part := strings.ToLower(ref)
	if part == "" || strings.Trim(part, "0123456789abcdef-") != "" {
		return fail(fmt.Errorf("%w: %q is not an item id", ErrInvalid, ref))
	}
	named := func(id uuid.UUID, _ bool) bool { return names(part, id) }
	var found []uuid.UUID
	var failed error
	for t, err := range s.trash(ctx, nil, named) {
		switch {
		case t == nil:
			return fail(err)
		case err != nil:
			failed = cmp.Or(failed, err)
		case !slices.Contains(found, t.ID): // a copied context has items of the same ids
			found = append(found, t.ID)
		}
	}
	switch len(found) {
	case 0:
		if failed != nil {
			return fail(failed)
		}
		return fail(fmt.Errorf("%w: no item id begins or ends with %q", ErrNotExist, ref))
	case 1:
		return found[0], nil
	}
	return fail(&AmbiguousError{ref, found, "items"})
}

// lockCollecting takes collectLock.
func (s *Store) lockCollecting(ctx context.Context) (release func(), err error) {
	lock := s.fs.Lock(collectLock)
	if err := s.acquire(ctx, lock); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = lock.Release()
		_ = lock.Close()
	}, nil
}

// collectLock is held to collect, purge, restore or erase.
const collectLock = ctxfolder.Locks + "/gc"

// Purge removes items from the trash for good, now: those with these ids, or without ids all that were removed longer
// ago than older. It yields each; with dryRun it removes none. An item whose removal fails comes with its error, and
// the others follow.
func (s *Store) Purge(ctx context.Context, items []uuid.UUID, older time.Duration, dryRun bool) iter.Seq2[Trashed, error] {
	return func(yield func(Trashed, error) bool) {
		fail := func(err error) { yield(Trashed{}, public(Error{Op: "empty the trash of", Path: s.path}, err)) }
		if !dryRun {
			if s.readOnly {
				fail(ErrReadOnly)
				return
			}
			release, err := s.lockCollecting(ctx)
			if err != nil {
				fail(err)
				return
			}
			defer release()
		}
		log := s.beginLog(dryRun)
		defer log.close()
		for t, err := range s.trash(ctx, nil, nil) {
			if t == nil {
				fail(err)
				return
			}
			if err != nil {
				if !yield(t.public(), err) {
					return
				}
				continue
			}
			if len(items) > 0 && !slices.Contains(items, t.ID) || len(items) == 0 && older > 0 && !s.expired(t, older) {
				continue
			}
			x, err := s.purge(ctx, nil, t, dryRun)
			if err == nil {
				log.add(Collected{x, true})
			}
			if !yield(x, public(Error{Op: "purge", Path: x.Path}, err)) {
				return
			}
		}
	}
}

// expired reports whether an item was removed longer ago than grace. A clock that was set back makes it younger.
func (s *Store) expired(t *trashed, grace time.Duration) bool { return s.now().Sub(t.Since()) > grace }

// purge removes an item from the trash of c, which may be nil. The caller holds collectLock, unless it is a dry run.
func (s *Store) purge(ctx context.Context, c *Context, t *trashed, dryRun bool) (Trashed, error) {
	x := t.public()
	if dryRun {
		return x, nil
	}
	// Only the item explains what an interrupted collection left of its messages, in packs and in files, so that goes first.
	err := s.dropCut(ctx, c, t)
	if c != nil {
		err = errors.Join(err, c.clearLeft(ctx, t.TrashEntry))
	} else {
		err = errors.Join(err, s.clearLeftOver(ctx, t))
	}
	if err != nil && ctx.Err() != nil {
		return x, err
	}
	err = t.Purge()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return x, err
}
