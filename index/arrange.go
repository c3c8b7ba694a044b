package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Plan says where [Log.Arrange] puts messages, by line. Messages that it does not name stay where they are.
type Plan struct {
	Pack map[uuid.UUID]Spans // in one new pack
	File map[uuid.UUID]Spans // in message files
	// Payloads calls add for each payload of a message that belongs in the new pack.
	Payloads func(envelope []byte, add func(payload []byte) error) error
	// Progress receives how many messages of the affected lines were examined, and how many there are. It may be nil.
	Progress func(done, all int64)
	// Compressor compresses the new pack; nil for one of its own.
	Compressor *archive.Compressor
	// Aside names damaged packs. When no line is read from them any more, they go to the trash and are not removed.
	Aside []uuid.UUID
}

// ArrangeResult is the result of [Log.Arrange].
type ArrangeResult struct {
	Messages int64       // that were moved
	Stayed   int64       // that could not be moved: edited by hand, damaged, too large, or the name of their file was taken
	Files    int64       // bytes of the message files that were removed or created
	Pack     uuid.UUID   // the new pack, uuid.Nil for none
	Packed   int64       // its size in bytes
	Removed  []uuid.UUID // packs that no line is read from any more
	Freed    int64       // their size in bytes
}

// Arrange moves messages between message files and packs. It blocks folds, but neither readers nor appends. Messages
// that are replaced or cut meanwhile stay as they are.
//
// Crash order: everything is settled first, so that nothing needs the folded journals. The new pack, files and rows,
// and the payloads of packs about to go, are durable before index.json names the new places. Unneeded data goes last:
// message files, packs, row files, journals. So each message is always where index.json says, and leftovers are copies.
func (l *Log) Arrange(ctx stdcontext.Context, plan Plan) (ArrangeResult, error) {
	if err := l.acquire(ctx, l.dir.FoldLock); err != nil {
		return ArrangeResult{}, err
	}
	defer l.dir.FoldLock.Release()
	moved, err := l.arrange(ctx, plan)
	if !errors.Is(err, ErrDamaged) {
		return moved, err
	}
	if err := l.foldAnew(ctx, err); err != nil {
		return moved, err
	}
	return l.arrange(ctx, plan)
}

func (l *Log) arrange(ctx stdcontext.Context, plan Plan) (ArrangeResult, error) {
	if err := l.fold(ctx, true); err != nil {
		return ArrangeResult{}, err
	}
	a := arrangement{log: l, plan: plan}
	if err := a.begin(); err != nil {
		return a.moved, err
	}
	if a.x.unsettled() {
		return a.moved, fmt.Errorf("%w: messages of folded journals are not durable in their files yet", ErrBusy)
	}
	err := a.lines(ctx)
	if err == nil {
		err = a.settle()
	}
	if a.pack != nil {
		a.pack.Abort() // does nothing after Commit
	}
	if err == nil && a.changed {
		err = a.commit(ctx)
	}
	if a.folder != nil {
		defer a.folder.Close()
	}
	if err != nil || !a.changed {
		return a.moved, err
	}
	return a.moved, a.clear(ctx)
}

// arrangement is the state of one Arrange.
type arrangement struct {
	log     *Log
	plan    Plan
	x       *indexFile
	work    *foldWork
	wrote   settleRun
	folder  vfs.FS // the folder of the packs
	pack    *archive.Writer
	changed bool
	moved   ArrangeResult

	done, all int64 // messages examined
}

func (a *arrangement) begin() error {
	l := a.log
	l.advance.Lock()
	defer l.advance.Unlock()
	x, err := l.takeFolded()
	if err != nil {
		return err
	}
	a.x, a.work = x, l.workOf(x)
	a.work.journals = append(x.retained(), x.Live)
	a.work.folders = l.state.folders()
	a.wrote = l.newSettle()
	if len(a.plan.File) > 0 {
		// This sync collects errors about earlier files, so that a later error is about the files created here.
		if err := l.dir.SyncAll(&l.failures); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			l.resettle = true
		}
	}
	// A pack stores lines in this order.
	slices.SortFunc(a.work.lines, func(a, b foldLine) int { return compareIDs(a.Line, b.Line) })
	return nil
}

// lines rearranges each line that the plan touches.
func (a *arrangement) lines(ctx stdcontext.Context) error {
	for i := range a.work.lines {
		if ln := &a.work.lines[i]; a.plan.touches(ln.Line) {
			a.all += ln.Count
		}
	}
	for i := range a.work.lines {
		ln := &a.work.lines[i]
		if !a.plan.touches(ln.Line) {
			continue
		}
		packs := ln.Packs
		if len(a.plan.Pack[ln.Line]) > 0 {
			if err := a.openPack(); err != nil {
				return err
			}
			packs = append(slices.Clone(packs), a.pack.ID())
		}
		rows, err := buildRows(a.log.dir, ln.Counts, ln.Rows+1, packs)
		if err != nil {
			return err
		}
		if err := a.line(ctx, ln, rows); err != nil {
			rows.abandon()
			return err
		}
		if ln.Placement, err = rows.finish(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) touches(line uuid.UUID) bool { return len(p.Pack[line])+len(p.File[line]) > 0 }

func (a *arrangement) openPack() (err error) {
	if a.pack != nil {
		return nil
	}
	dir := a.log.dir
	if info, err := dir.FS.Lstat(ctxfolder.Archive); err == nil && !info.IsDir() {
		if err := dir.SetAside(ctxfolder.Archive); err != nil {
			return err
		}
	}
	if err := dir.FS.Mkdir(ctxfolder.Archive); err == nil {
		err = dir.FS.SyncDir(".")
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if a.folder, err = dir.FS.Sub(ctxfolder.Archive); err != nil {
		return err
	}
	if a.plan.Compressor == nil {
		a.plan.Compressor = archive.NewCompressor(1)
	}
	a.pack, err = archive.CreateWith(a.folder, a.plan.Compressor)
	return err
}

// arrangedAtOnce bounds the bytes of messages held in memory at a time.
const arrangedAtOnce = 4 << 20

func (a *arrangement) line(ctx stdcontext.Context, ln *foldLine, rows *rowsBuilder) error {
	for entries, err := range a.log.storedPages(ln.Line, ln.Base, ln.End()) {
		if err != nil {
			return err
		}
		for len(entries) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, size := 1, entries[0].Size
			for n < len(entries) && size+entries[n].Size <= arrangedAtOnce {
				size += entries[n].Size
				n++
			}
			if err := a.moveSome(ctx, ln, entries[:n]); err != nil {
				return err
			}
			for i := range entries[:n] {
				if err := rows.put(&entries[i]); err != nil {
					return err
				}
			}
			entries = entries[n:]
			if a.done += int64(n); a.plan.Progress != nil {
				a.plan.Progress(a.done, a.all)
			}
		}
	}
	return nil
}

// moveSome moves some messages of a line and updates their entries.
func (a *arrangement) moveSome(ctx stdcontext.Context, ln *foldLine, entries []Entry) error {
	pack, file := a.plan.Pack[ln.Line], a.plan.File[ln.Line]
	var records [][]byte
	if slices.ContainsFunc(entries, func(e Entry) bool { return archived(e) && (pack.Has(e.Position) || file.Has(e.Position)) }) {
		records = make([][]byte, len(entries))
		a.log.ReadPacked(entries, records)
	}
	var out []*Entry
	var raws [][]byte
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Lost != "" || a.log.isChanged(ln.Line, e.Position):
		case pack.Has(e.Position):
			var raw []byte
			if archived(*e) {
				raw = records[i]
			}
			if raw == nil { // a repair may have created a file for a message that is damaged in its pack
				if b, is, _ := e.ReadFile(a.log.dir, a.work.folders[ln.Line]); is.Whole() {
					raw = b
				}
			}
			if err := a.add(e, raw); err != nil {
				return err
			}
		case file.Has(e.Position) && archived(*e):
			if records[i] == nil {
				a.moved.Stayed++
				continue
			}
			out, raws = append(out, e), append(raws, records[i])
		}
	}
	if len(out) == 0 {
		return nil
	}
	return a.createFiles(ctx, ln.Line, out, raws)
}

// isChanged reports whether a journal replaced a folded message or cut it off.
func (l *Log) isChanged(line uuid.UUID, position int64) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	ln := l.state.lines[line]
	return ln == nil || position >= ln.End() || ln.changed[position] != nil
}

// add adds a message to the new pack.
func (a *arrangement) add(e *Entry, raw []byte) error {
	if raw == nil {
		a.moved.Stayed++
		return nil
	}
	err := a.pack.Add(raw)
	if errors.Is(err, archive.ErrFull) || errors.Is(err, vfs.ErrTooLarge) || errors.Is(err, message.ErrMalformed) {
		a.moved.Stayed++
		return nil
	}
	if err == nil && a.plan.Payloads != nil && e.Payloads > 0 {
		err = a.plan.Payloads(raw, func(payload []byte) error {
			_, err := a.pack.AddPayload(payload)
			if errors.Is(err, archive.ErrFull) || errors.Is(err, vfs.ErrTooLarge) {
				return nil // its blob stays
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	a.changed = true
	a.moved.Messages++
	if !archived(*e) {
		a.moved.Files += e.Size + 1
	}
	e.Pack = a.pack.ID()
	return nil
}

// createFiles creates message files of archived messages, under the context lock, since branches and messages may
// change.
func (a *arrangement) createFiles(ctx stdcontext.Context, line uuid.UUID, out []*Entry, raws [][]byte) error {
	return a.log.underLock(ctx, func(folders map[uuid.UUID]string) error {
		folder := folders[line]
		for i, e := range out {
			if folder == "" || a.log.isChanged(line, e.Position) {
				a.moved.Stayed++
				continue
			}
			if err := a.create(folder, e, raws[i]); err != nil {
				return err
			}
			a.wrote.wrote[folder] = append(a.wrote.wrote[folder], e.FileID())
			a.changed = true
			a.moved.Messages++
			a.moved.Files += e.Size + 1
			e.Pack, e.place = uuid.Nil, archive.Place{}
		}
		return nil
	})
}

// create creates the file of an archived message. A file edited by hand stays. A whole file is written again: a crash
// may have left it, torn on disk where a sync failed. Any other file moves to the trash.
func (a *arrangement) create(folder string, e *Entry, raw []byte) error {
	dir := a.log.dir
	switch _, is, _ := e.ReadFile(dir, folder); is {
	case FileEdited:
		return nil
	case FileDamaged:
		if err := dir.SetAside(dir.MessagePath(folder, e.FileID())); err != nil {
			return err
		}
	}
	return dir.ReplaceMessage(folder, e.FileID(), raw, e.StoredAt())
}

// settle makes everything durable that index.json is about to name.
func (a *arrangement) settle() error {
	if !a.changed {
		return nil
	}
	l := a.log
	if a.pack != nil {
		size, err := a.pack.Commit()
		if err != nil {
			return err
		}
		a.moved.Pack, a.moved.Packed = a.pack.ID(), size
	}
	if len(a.wrote.wrote) > 0 {
		if err := a.wrote.sync(func() error { return nil }); err != nil {
			return fmt.Errorf("%w: %w", ErrDurability, err)
		}
	}
	if err := a.storeFreedPayloads(); err != nil {
		return err
	}
	return l.syncRows()
}

// storeFreedPayloads stores the payloads of packs about to go as blobs.
func (a *arrangement) storeFreedPayloads() error {
	var named []uuid.UUID
	for i := range a.work.lines {
		named = append(named, a.work.lines[i].Packs...)
	}
	for _, id := range a.x.packs() {
		if slices.Contains(named, id) || slices.Contains(a.moved.Removed, id) {
			continue
		}
		a.moved.Removed = append(a.moved.Removed, id)
		if err := a.log.storePackPayloads(id, a.pack); err != nil {
			return err
		}
	}
	return nil
}

// commit replaces index.json. If nobody appended meanwhile, a new journal is the only one left.
func (a *arrangement) commit(ctx stdcontext.Context) error {
	return a.log.underLock(ctx, func(map[uuid.UUID]string) error {
		done, err := a.commitAlone()
		if done || err != nil {
			return err
		}
		return a.log.commit(a.work, []uint64{a.x.Live})
	})
}
