package erase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// find finds the messages on every line, including lines without a name.
func (x *target) find(ids map[uuid.UUID]bool) error {
	x.places, x.lost, x.of = nil, "", len(ids)
	for _, line := range x.c.Current().Lines {
		for entry, err := range x.c.Index.All(context.Background(), line.ID, 0, math.MaxInt64) {
			if err != nil {
				return err
			}
			if ids[entry.ID] {
				at := engine.Place{Entry: *entry}
				at.Span.Line, at.Span.Folder = line.ID, line.Folder
				x.places = append(x.places, at)
			}
			if entry.IsLost() && entry.ID == uuid.Nil && !entry.IsSealed() {
				x.lost = fmt.Sprintf("position %d of line %s cannot be read", entry.Position, line.ID)
			}
		}
	}
	return nil
}

// verify fails if a part of the history is damaged or missing. find was called before.
func (x *target) verify() error {
	problems, err := x.c.Index.Problems()
	switch {
	case err != nil:
	case len(problems) > 0:
		err = fmt.Errorf("%w: %s", engine.ErrDamaged, problems[0].String())
	case x.lost != "":
		err = fmt.Errorf("%w: %s", engine.ErrDamaged, x.lost)
	}
	return x.repairFirst(err)
}

// tidy removes what a crash left beside the history, and moves parts of another one to the trash.
func (x *target) tidy() error {
	unlinked, err := x.c.Index.Tidy()
	for _, p := range unlinked {
		if err == nil {
			err = x.c.Dir.SetAside(p)
		}
	}
	return err
}

// maxTries bounds how often an erase begins again.
const maxTries = 8

// erase removes the messages from the context or a copy of it. It begins again if another writer replaced one meanwhile.
func (e *eraser) erase(ctx context.Context, x *target) error {
	for range maxTries {
		var err error
		if !x.gone {
			err = x.c.Exclusively(ctx, func() error { return e.remove(ctx, x) })
		}
		x.gone = false
		if err == nil { // the title that went is in earlier metadata
			err = x.repairFirst(x.c.Scrub(ctx, false, e.ids[origin.TitleErased(x.c.Current())]))
		}
		done := false
		if err == nil {
			err = x.c.Exclusively(ctx, func() (err error) {
				done, err = e.settle(x)
				return err
			})
		}
		if err != nil || done {
			return err
		}
	}
	return fmt.Errorf("%w: other writers keep replacing the messages", engine.ErrLocked)
}

// prepare comes before the search. The caller holds the locks of the context.
func (x *target) prepare(ctx context.Context) error {
	err := x.c.AwaitFiles(ctx) // none appears behind the search
	if err == nil {
		err = x.tidy()
	}
	if err == nil {
		err = sweepTrash(x.c.Dir.FS)
	}
	return err
}

// remove looks for the messages once more, and does what comes before the seal. The caller holds the locks of the context.
func (e *eraser) remove(ctx context.Context, x *target) error {
	came, err := e.addAlong(ctx, x)
	if err == nil {
		err = x.find(e.ids)
	}
	if err == nil {
		err = x.prepare(ctx)
	}
	if err != nil {
		return err
	}
	traces, err := e.findTraces(x)
	if err != nil {
		return err
	}
	if len(e.blobs) > e.inNote || len(came) > 0 { // a version or a copy came meanwhile
		if err := e.writeNote(); err != nil {
			return err
		}
	}
	return e.removeFrom(x, traces)
}

// removeFrom does what comes before the seal.
//
// Crash order: the note is durable before the commit, and the commit before the files go.
func (e *eraser) removeFrom(x *target, traces []trace) error {
	e.reportPlaces(x)
	if err := e.commit(x); err != nil {
		return err
	}
	return e.clear(x, traces)
}

// sweepTrash removes what an interrupted collection left: pieces of a message without its id.
func sweepTrash(fsys vfs.FS) error {
	left, err := ctxfolder.ListTrash(fsys)
	if err == nil {
		err = ctxfolder.SweepTrash(fsys, left)
	}
	if err == nil {
		err = fsys.SyncDir(ctxfolder.Trash)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// commit commits that the messages are erased, those that are already too: the next seal then looks into every segment for
// them. A title that was made from one of them goes in the same commit.
func (e *eraser) commit(x *target) error {
	m := x.c.Current()
	var items []engine.Item
	for i := range m.Lines {
		var positions []int64
		for _, at := range x.places {
			if at.Span.Line == m.Lines[i].ID {
				positions = append(positions, at.Entry.Position)
			}
		}
		if len(positions) == 0 {
			continue
		}
		item, err := x.c.Index.EraseItem(m.Lines[i].ID, positions)
		if err != nil {
			return err
		}
		items = append(items, engine.Item{Item: item})
	}
	if e.ids[origin.TitleFrom(m)] {
		e.reportTitle(x)
		m = m.Clone()
		origin.EraseTitle(m)
		return x.c.ReplaceMetadata(m, items...)
	}
	if len(items) == 0 {
		return nil
	}
	return x.c.CommitDurably(items)
}

// settle does what comes after the seal, unless the history still has one of the messages. The caller holds the locks of the
// context.
func (e *eraser) settle(x *target) (done bool, err error) {
	if err := x.find(e.ids); err != nil {
		return false, err
	}
	if left, err := e.findInHistory(x); err != nil || len(left) > 0 {
		return false, err
	}
	if err := x.verify(); err != nil {
		return false, err
	}
	if _, err := x.c.Dir.WriteMetadata(x.c.Current()); err != nil {
		return false, err
	}
	folders := []string{".", ctxfolder.Segments} // those of message files have the id in their name: see traceByName
	if err := trash.ClearTemporaries(x.c.Dir.FS, folders...); err != nil {
		return false, err
	}
	for _, folder := range folders { // logs and segments went
		if err := x.c.Dir.FS.SyncDir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// reportPlaces reports the messages that no file has.
func (e *eraser) reportPlaces(x *target) {
	for _, at := range x.places {
		switch {
		case at.Entry.IsErased():
			e.report(at.Entry.ID, x.path(""), 0, "already erased")
		case at.Entry.IsLost():
			e.report(at.Entry.ID, x.path(""), 0, "lost message")
		}
	}
}
