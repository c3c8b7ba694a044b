package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// RepairOptions say what a repair does.
type RepairOptions struct {
	DryRun bool // plan only
	Adopt  bool // take in valid messages that were never committed here
}

// repair is one repair on its way.
type repair struct {
	*examination
	opts   RepairOptions
	yield  func(Repaired) bool
	copies *copies
	done   []Repaired
	wrote  map[string]bool                // files and folders to be synced where there is no call for all of them
	lost   map[uuid.UUID]map[int64]string // by line and position, why
	left   int                            // things that nothing can be done about
	failed []error                        // of things that could not be mended

	failures uint64 // see Dir.SyncAll
}

// Repair mends what a check with ReadData would find, and yields what it did. What it replaces goes to trash. It is done in
// this order: metadata, index, messages, payloads; each is durable before it is told. Doing it again does nothing. left is how
// many things stay wrong.
func (c *Context) Repair(ctx context.Context, o RepairOptions, yield func(Repaired) bool) (left int, err error) {
	c.ReadData = true
	r := &repair{opts: o, yield: yield, wrote: map[string]bool{}, lost: map[uuid.UUID]map[int64]string{}}
	r.examination = &examination{Context: c}
	err = r.run(ctx)
	for _, reasons := range r.lost {
		r.left += len(reasons)
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	return r.left, err
}

func (r *repair) run(ctx context.Context) error {
	if planned, err := r.mendNames(ctx); err != nil || planned {
		return err
	}
	if err := r.mendMetadata(ctx); err != nil {
		return err
	}
	if err := r.finishRenaming(ctx); err != nil {
		return err
	}
	var problems []problem
	err := r.examine(ctx, func(p problem) bool {
		problems = append(problems, p)
		return true
	})
	if err != nil {
		return err
	}
	problems = slices.DeleteFunc(problems, func(p problem) bool {
		if p.Kind == KindMetadata || p.Repairable || r.opts.Adopt && p.Kind == KindForeign {
			return p.Kind == KindMetadata
		}
		if p.Severity != SeverityInfo {
			r.left++
		}
		return true
	})
	problems = dropExplained(problems)
	if err := r.findCopies(problems); err != nil {
		return err
	}
	if r.opts.DryRun {
		return r.plan(problems)
	}
	if len(problems) == 0 {
		return nil
	}
	return r.mend(ctx, problems)
}

// findCopies looks for copies of the messages that are wrong.
func (r *repair) findCopies(problems []problem) (err error) {
	wanted := map[content]bool{}
	for _, p := range problems {
		if p.entry.ID != uuid.Nil && p.entry.Size > 0 && !p.taken {
			wanted[content{p.entry.Size, p.entry.Sum}] = true
		}
	}
	if r.copies, err = find(r.Dir, wanted); err != nil {
		return err
	}
	for _, p := range problems { // what lies in the place of one may be another one
		if p.Kind == KindDamaged {
			raw, err := readFound(r.Dir, p.Path[len(r.Dir.ID.String())+1:])
			if key := (content{int64(len(raw)), message.Sum(raw)}); err == nil && wanted[key] {
				r.copies.held[key] = raw
			}
		}
	}
	return nil
}

// plan tells what would be done.
func (r *repair) plan(problems []problem) error {
	for _, p := range problems {
		detail := p.Detail + "; would be mended"
		switch p.Kind {
		case KindMissing, KindDamaged:
			if _, from := r.copies.copyOf(r.Log, &p.entry); from != "" {
				detail = p.Detail + "; would be written again from " + from
			} else {
				detail = p.Detail + "; would be marked unavailable"
			}
		case KindIndex, KindJournal:
			if detail = p.Detail + "; would be made again"; p.stray != 0 {
				detail = p.Detail + "; would be moved to the trash"
			}
		case KindForeign:
			detail = p.Detail + "; would be taken in"
		}
		if !r.yield(Repaired{Context: p.Context, Kind: p.Kind, Path: p.Path, ID: p.ID, Detail: detail}) {
			return errStopped
		}
	}
	return nil
}

// tell yields what was done. It is durable.
func (r *repair) tellDone() error {
	done := r.done
	r.done = nil
	for _, d := range done {
		if !r.yield(d) {
			return errStopped
		}
	}
	return nil
}

func (r *repair) did(p problem, format string, args ...any) {
	r.done = append(r.done, Repaired{Context: r.Dir.ID, Kind: p.Kind, Path: p.Path, ID: p.ID, Detail: fmt.Sprintf(format, args...)})
}

// mendMetadata writes metadata.json where it cannot be used, with the context locked.
//
// Crash order: what lies there goes to trash before the new one is written; in between there is none, and the same is
// found again.
func (r *repair) mendMetadata(ctx context.Context) error {
	m, source, err := r.usableMetadata()
	if err == nil {
		return nil
	}
	if m == nil {
		return err
	}
	p := problem{Finding: Finding{Context: r.Dir.ID, Kind: KindMetadata, Path: r.Dir.ID.String() + "/" + ctxfolder.MetadataFile}}
	if r.opts.DryRun {
		r.did(p, "%v; would be written again from %s", err, source)
		return r.tellDone()
	}
	err = r.locked(ctx, func() error {
		if _, _, err := r.Dir.ReadMetadata(); err == nil {
			return nil // somebody was faster
		}
		if err := r.setAside(ctxfolder.MetadataFile); err != nil {
			return err
		}
		m.Revision++
		if _, err := r.Dir.WriteMetadata(m); err != nil {
			return err
		}
		r.did(p, "written again from %s", source)
		return nil
	})
	if err != nil {
		return err
	}
	return r.tellDone()
}

// exclusively runs f with the context locked and its index saved. Only the wait for the locks is bounded.
func (r *repair) exclusively(ctx context.Context, f func() error) error {
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	return r.Log.Exclusively(limited, f)
}

// locked runs f with the context locked, for what comes before the index can be relied on.
func (r *repair) locked(ctx context.Context, f func() error) error {
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	if err := r.Dir.FoldLock.Acquire(limited); err != nil {
		return err
	}
	defer r.Dir.FoldLock.Release()
	if err := r.Dir.Lock.Acquire(limited); err != nil {
		return err
	}
	defer r.Dir.Lock.Release()
	if err := r.Dir.Check(); err != nil {
		return err
	}
	return f()
}

// setAside moves what lies at a path of the context's folder to trash, if anything does.
func (r *repair) setAside(path string) error {
	_, err := r.Dir.FS.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Dir.SetAside(path)
}

// mend mends the problems: first what copies are needed for, since a fold lets go of journals, then, when everything has its
// row, what concerns rows and journals. A rebuilt index is saved at the beginning.
func (r *repair) mend(ctx context.Context, problems []problem) error {
	// This collects errors about files that were written before. Later ones are about the files that the repair writes.
	_ = r.Dir.SyncAll(&r.failures)
	err := r.exclusively(ctx, func() error {
		m, _, err := r.Dir.ReadMetadata()
		if err != nil {
			return err
		}
		r.metadata, r.alone = m, true
		if err := r.mendAll(ctx, problems, r.mendOne); err != nil {
			return err
		}
		if r.opts.Adopt {
			if err := r.adopt(problems); err != nil {
				return err
			}
		}
		if err := r.mendAll(ctx, problems, r.mendStray); err != nil {
			return err
		}
		return r.sync()
	})
	if err != nil {
		return err
	}
	// What could not be mended stays in its journal, and the fold says so.
	if err := r.Log.Fold(ctx, true); errors.Is(err, index.ErrOnlyCopy) {
		r.failed = append(r.failed, err)
	} else if err != nil {
		return err
	}
	err = r.exclusively(ctx, func() error {
		if err := r.mendAll(ctx, problems, r.mendJournal); err != nil {
			return err
		}
		for line, reasons := range r.lost {
			if err := r.Log.Mark(line, reasons); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = r.mendPacks(ctx, problems)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.tellDone(), errors.Join(r.failed...))
}

func (r *repair) mendAll(ctx context.Context, problems []problem, mend func(problem) error) error {
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := mend(p); err != nil { // the others can be mended all the same
			r.failed = append(r.failed, fmt.Errorf("%s %s: %w", p.Kind, cmp.Or(p.Path, p.ID.String()), err))
		}
	}
	return nil
}

// dropExplained leaves out messages that have no file in their place but one elsewhere.
func dropExplained(problems []problem) []problem {
	type place struct {
		line     uuid.UUID
		position int64
	}
	elsewhere := map[place]bool{}
	for _, p := range problems {
		if p.Kind == KindMisplaced {
			elsewhere[place{p.line, p.entry.Position}] = true
		}
	}
	return slices.DeleteFunc(problems, func(p problem) bool {
		return (p.Kind == KindMissing || p.Kind == KindDamaged) && elsewhere[place{p.line, p.entry.Position}]
	})
}

// sync makes durable what was written: with one call where the system has it.
func (r *repair) sync() error {
	if len(r.wrote) == 0 {
		return nil
	}
	err := r.Dir.SyncAll(&r.failures)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for name := range r.wrote {
		info, err := r.Dir.FS.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil && info.IsDir():
			err = r.Dir.FS.SyncDir(name)
		case err == nil:
			err = vfs.SyncFile(r.Dir.FS, name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.Dir.FS.SyncDir(ctxfolder.Messages)
}
