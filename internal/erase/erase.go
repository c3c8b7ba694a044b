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

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

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
	forget := e.s.EndErasure
	if e.o.locked { // the purge goes on
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

// MadeFrom erases the moments of a context that were made from some of its messages, before a purge removes these. If it
// cannot read a moment, which may be one of them, it fails with [engine.ErrUnexamined] and changes nothing. The caller
// holds [engine.CollectionLock].
//
// It finishes an erase that was interrupted in the context: what is erased already no longer says that it is a moment.
//
// Crash order: as for [Messages]. The moments go before their sources, so no crash leaves one without its source.
func MadeFrom(ctx context.Context, s *engine.Store, id uuid.UUID, messages []uuid.UUID) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	from := map[uuid.UUID]bool{}
	for _, m := range messages {
		from[m] = true
	}
	made, err := (&target{c: c}).moments(ctx, from)
	if note, nerr := ctxfolder.ReadErasing(c.Dir.FS); err == nil && nerr == nil {
		made = append(made, note.Messages...)
	}
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	if err != nil || len(made) == 0 {
		return err
	}
	for _, err := range Messages(ctx, s, id, made, Options{Shared: true, locked: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// moments returns the moments that were made from some messages and are not among them.
func (x *target) moments(ctx context.Context, from map[uuid.UUID]bool) (made []uuid.UUID, err error) {
	in, err := x.momentPlaces()
	if err != nil {
		return nil, err
	}
	var unexamined error
	err = x.examine(ctx, in, func(id uuid.UUID, l *links, why error) {
		switch {
		case from[id]:
		case why != nil:
			unexamined = engine.Wrap(engine.Error{Op: "erase from", Context: x.c.Dir.ID, ID: id}, fmt.Errorf("%w: %w", engine.ErrUnexamined, why))
		case l.madeFrom(from) != uuid.Nil:
			made = append(made, id)
		}
	})
	if err == nil {
		err = unexamined
	}
	return made, err
}
