// Package erase removes messages for good.
//
// [Messages] finds every file of the store that holds a version of the messages: logs, segments, message files, trash
// items, copies of the context in the store's trash, and blobs. It removes these files, or rewrites them without the
// messages. The positions stay, marked as erased. A note in the context's folder makes an interrupted erase repeatable.
//
// The package uses package engine, and package trash for unreferenced blobs and for temporary files.
package erase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Removal is a file that an erase removed, or rewrote without the message.
type Removal struct {
	Context uuid.UUID
	ID      uuid.UUID // of the message; uuid.Nil for a payload
	Path    string    // relative to the store
	Bytes   int64     // removed
	Reason  string    // kind of thing
	Foreign bool      // not removed: a file that is none of the store's, and holds the message or could not be searched

	With    uuid.UUID // the message to erase with which this one went along; uuid.Nil if it was named itself
	Problem error     // why the message could not be examined; nothing was removed
}

// Options configures an erase.
type Options struct {
	Shared bool // erase also what several branches show
	DryRun bool // report what would be done, and change nothing

	locked bool // the caller holds [engine.CollectionLock]
}

// Messages removes messages of a context for good, on all lines: their files, all their versions in logs, segments and
// trash, and in copies of the context in the store's trash. It also removes unreferenced payloads of the store. It
// yields each removal when the erase is complete. The positions stay: readers show an erased message as unavailable,
// with [engine.ErrErased].
//
// Before any change, it fails with [engine.ErrNotExist] when neither the context nor its trash has one of the messages,
// with [engine.ErrShared] when several branches show one and that is not allowed, and with [engine.ErrDamaged] when a part
// of the history is damaged or missing: a repair has to come first, since that part may have the messages. It fails with
// [engine.ErrLocked] during a collection or restore. A second erase finishes an interrupted one. docs/DESIGN.md lists what
// an erase cannot reach.
//
// The erase includes what repeats the text of the messages: the moments that were made from them, in an imported context
// the records that repeat them, and a title that was made from one of them. A message that cannot be read may be one of
// these. Then the erase removes the rest, yields a removal with a Problem for each such message, and fails with
// [engine.ErrUnexamined] at its end. The note stays: the next erase in the context looks again.
//
// It yields as well, as foreign, files of the store that hold one of the messages and that no rule of the format
// explains: it leaves these alone. See findCopies for what is searched.
//
// Crash order: a note in the context's folder names the messages and the payloads that they referred to. It is durable
// before the first removal, and is removed last. Then a record erases the messages, so that none is missing without a
// reason. Then the other files go, and a seal removes the logs and the versions in segments. Payloads are removed when
// nothing refers to them any more: the seal makes blobs of those in logs. The folder of derived data loses the messages
// after the context, so that nothing brings them back there.
func Messages(ctx context.Context, s *engine.Store, id uuid.UUID, ids []uuid.UUID, o Options) iter.Seq2[Removal, error] {
	return func(yield func(Removal, error) bool) {
		e := &eraser{
			s: s, id: id, ids: map[uuid.UUID]bool{}, noted: map[uuid.UUID]bool{}, o: o, reported: map[string]bool{},
			along: map[uuid.UUID]uuid.UUID{}, unexamined: map[*target][]unexamined{},
			blobs: map[blob.Sum]bool{}, gone: map[blob.Sum]bool{}, paths: map[string]bool{}, titles: map[string]bool{},
		}
		err := e.run(ctx, ids)
		s.Forget(id) // an open log would keep what was removed
		for _, x := range e.done {
			if !yield(x, nil) {
				return
			}
		}
		if err == nil {
			err = e.incomplete(yield)
		}
		if err != nil {
			yield(Removal{}, engine.Wrap(engine.Error{Op: "erase from", Context: id}, err))
		}
	}
}

// eraser is the state of one erase.
type eraser struct {
	s     *engine.Store
	id    uuid.UUID
	ids   map[uuid.UUID]bool // to erase
	noted map[uuid.UUID]bool // those in the note of an interrupted erase
	// along has those of ids that repeat others of them, and with which one each goes; uuid.Nil if only the note says so.
	along      map[uuid.UUID]uuid.UUID
	unexamined map[*target][]unexamined
	o          Options
	main       *target
	all        []*target         // the copies in trash, then main, which has the note
	blobs      map[blob.Sum]bool // payloads that a version of the messages referred to, or that nothing refers to
	inNote     int               // how many of them the note has
	gone       map[blob.Sum]bool // those of them that are removed
	// referred says that a version of the messages counts references, even if none with them is left.
	referred bool
	paths    map[string]bool // in a dry run: files in trash that would go, relative to the context
	done     []Removal
	texts    map[uuid.UUID][]byte // of the messages, by which copies that a person made are found
	titles   map[string]bool      // those that were made from the messages
	// strangers are the files among the message files of the context that are none, relative to the store.
	strangers []string
	reported  map[string]bool
}

// target is the context, or a copy of it in the store's trash.
type target struct {
	c      *engine.Context
	in     string // its folder, relative to the store and ending in a slash; "" for the store itself
	places []engine.Place
	of     int                // how many ids they were looked up for
	gone   bool               // the first try removed the messages already
	lost   string             // where the history cannot be read; empty if it can be
	known  map[version]*links // of the messages that were examined; nil for those without any
}

func (x *target) path(inside string) string { return x.in + path.Join(x.c.Dir.ID.String(), inside) }

func (e *eraser) run(ctx context.Context, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return fmt.Errorf("%w: no message ids given", engine.ErrInvalid)
	}
	if e.s.ReadOnly && !e.o.DryRun {
		return engine.ErrReadOnly
	}
	for _, id := range ids {
		e.ids[id] = true
	}
	if !e.o.DryRun && !e.o.locked {
		// A collection or a restore has read messages that it is about to write.
		release, err := e.s.LockCollection(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	c, err := e.s.Open(ctx, e.id)
	if err != nil {
		return err
	}
	defer c.Close()
	if !e.o.DryRun {
		if err := trash.FinishPurge(ctx, e.s, c); err != nil {
			return err
		}
	}
	e.main = &target{c: c}
	return e.withTrashCopies(ctx, func() error {
		e.all = append(e.all, e.main)
		if e.o.DryRun {
			return e.plan(ctx, ids)
		}
		err := e.syncRemovals()
		if err == nil {
			err = c.Exclusively(ctx, func() error { return e.begin(ctx, ids) })
		}
		for _, x := range e.all {
			if err == nil {
				err = e.erase(ctx, x)
			}
		}
		if err == nil {
			err = e.eraseLooseTrash()
		}
		if err == nil {
			err = e.removePayloads(ctx)
		}
		for _, x := range e.all {
			if err == nil && len(e.gone) > 0 {
				err = x.c.Exclusively(ctx, func() error { return e.eraseTrash(x) })
			}
		}
		if err != nil {
			return err
		}
		return e.finish(ctx)
	})
}

// finish removes what repeats the messages outside of their contexts, and then the note, unless something could not be
// examined: then the next erase looks again.
func (e *eraser) finish(ctx context.Context) error {
	if e.titleLost() {
		if err := listing.Forget(e.s, e.id); err != nil {
			return err
		}
	}
	forget := e.s.EndForgetting
	if e.o.locked { // the purge continues
		forget = e.s.ForgetDerived
	}
	if err := forget(ctx, e.id); err != nil {
		return err
	}
	if _, left := e.missed(); !left {
		if err := e.main.c.Exclusively(ctx, e.removeNote); err != nil {
			return err
		}
	}
	return e.findCopies(ctx)
}

// withTrashCopies opens the copies of the context in the store's trash for f.
func (e *eraser) withTrashCopies(ctx context.Context, f func() error) error {
	var items []string
	for entry, err := range e.s.FS.ReadDir(ctxfolder.Trash) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			continue // a link may lead to the context itself
		}
		item := ctxfolder.Trash + "/" + entry.Name()
		info, err := e.s.FS.Lstat(item + "/" + e.id.String())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // it may be a copy
		}
		if err == nil && info.IsDir() {
			items = append(items, item)
		}
	}
	return e.openTrashCopies(ctx, items, f)
}

func (e *eraser) openTrashCopies(ctx context.Context, items []string, f func() error) error {
	if len(items) == 0 {
		return f()
	}
	item, err := e.s.FS.Sub(items[0])
	if err != nil {
		return err
	}
	defer item.Close()
	if !e.o.DryRun {
		// An interrupted erase left this folder, or it leads elsewhere.
		if err := vfs.RemoveAll(item, ctxfolder.Locks); err != nil {
			return err
		}
		if err := item.Mkdir(ctxfolder.Locks); err != nil {
			return err
		}
		defer vfs.RemoveAll(item, ctxfolder.Locks) //nolint:errcheck // empty files
	}
	c, err := e.s.In(item).Open(ctx, e.id)
	if err != nil {
		return fmt.Errorf("%s: %w", items[0], err)
	}
	defer c.Close()
	e.all = append(e.all, &target{c: c, in: items[0] + "/"})
	return e.openTrashCopies(ctx, items[1:], f)
}

// syncRemovals makes the invisible removals of an interrupted erase or purge durable: a crash could undo them.
func (e *eraser) syncRemovals() error {
	err := e.s.FS.SyncAll()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// report records once what happened to a thing.
func (e *eraser) report(id uuid.UUID, path string, bytes int64, reason string) {
	if key := id.String() + path; !e.reported[key] {
		e.reported[key] = true
		e.done = append(e.done, Removal{Context: e.id, ID: id, Path: path, Bytes: bytes, Reason: reason, With: e.along[id]})
	}
}
