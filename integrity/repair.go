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

// RepairOptions configure a repair.
type RepairOptions struct {
	DryRun bool // plan only
	Adopt  bool // adopt valid messages that were never committed here
}

// repair is a repair in progress.
type repair struct {
	*examination
	opts   RepairOptions
	yield  func(Repaired) bool
	copies *copies
	done   []Repaired
	wrote  map[string]bool                // files and folders to sync where no single call syncs all of them
	lost   map[uuid.UUID]map[int64]string // reasons by line and position
	left   int                            // problems that nothing can repair
	failed []error                        // errors of failed repairs

	failures uint64 // see Dir.SyncAll
}

// Repair repairs what a check with ReadData finds, and yields what it did. It moves what it replaces to the trash. The
// order is metadata, index, messages, payloads; Repair reports a change only once it is durable. A second Repair
// changes nothing. left is the number of problems that remain.
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
	why := r.metadataDiffers()
	if r.opts.DryRun {
		err = r.plan(problems)
	} else if len(problems) > 0 {
		err = r.mend(ctx, problems)
	}
	if err != nil || why == "" {
		return err
	}
	return r.takeMetadata(ctx, why)
}

// findCopies searches for copies of the affected messages.
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
	for _, p := range problems { // a file in the place of one message may hold another one
		if p.Kind == KindDamaged {
			raw, err := readFound(r.Dir, p.Path[len(r.Dir.ID.String())+1:])
			if key := (content{int64(len(raw)), message.Sum(raw)}); err == nil && wanted[key] {
				r.copies.held[key] = raw
			}
		}
	}
	return nil
}

// plan yields what a repair would do.
func (r *repair) plan(problems []problem) error {
	for _, p := range problems {
		detail := p.Detail + "; would repair it"
		switch p.Kind {
		case KindMissing, KindDamaged:
			if _, from := r.copies.copyOf(r.Log, &p.entry); from != "" {
				detail = p.Detail + "; would rewrite it from " + from
			} else {
				detail = p.Detail + "; would mark it unavailable"
			}
		case KindIndex, KindJournal:
			if detail = p.Detail + "; would rebuild it"; p.stray != 0 {
				detail = p.Detail + "; would move it to the trash"
			}
		case KindForeign:
			detail = p.Detail + "; would adopt it"
		}
		if !r.yield(Repaired{Context: p.Context, Kind: p.Kind, Path: p.Path, ID: p.ID, Detail: detail}) {
			return errStopped
		}
	}
	return nil
}

// reportDone yields what was done, which is durable by then.
func (r *repair) reportDone() error {
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

// mendMetadata replaces an unusable metadata.json, with the context locked.
//
// Crash order: the old file moves to the trash before the new one is written. In between there is no metadata.json, and
// the next repair finds the same substitute.
func (r *repair) mendMetadata(ctx context.Context) error {
	m, source, err := r.usableMetadata()
	if err == nil {
		return nil
	}
	if m == nil {
		return err
	}
	p := r.metadataProblem()
	if r.opts.DryRun {
		r.did(p, "%v; would rewrite it from %s", err, source)
		return r.reportDone()
	}
	err = r.locked(ctx, func() error {
		if _, is, _, err := r.Log.Metadata(); err == nil && is != ctxfolder.ProjectionUnusable {
			return nil // another process was faster
		}
		if err := r.setAside(ctxfolder.MetadataFile); err != nil {
			return err
		}
		m.Revision++
		if _, err := r.Dir.WriteMetadata(m); err != nil {
			return err
		}
		r.did(p, "rewritten from %s", source)
		return nil
	})
	if err != nil {
		return err
	}
	return r.reportDone()
}

func (r *repair) metadataProblem() problem {
	return problem{Finding: Finding{Context: r.Dir.ID, Kind: KindMetadata, Path: r.Dir.ID.String() + "/" + ctxfolder.MetadataFile}}
}

// takeMetadata commits what was edited in metadata.json by hand, and writes the file again. The old one moves to the
// trash.
//
// Crash order: see the engine's write, which does the same.
func (r *repair) takeMetadata(ctx context.Context, why string) error {
	p := r.metadataProblem()
	if r.opts.DryRun {
		r.did(p, "%s; would commit the edits that count and rewrite the file", why)
		return r.reportDone()
	}
	err := r.exclusively(ctx, func() error {
		m, is, _, err := r.Log.Metadata()
		altered := is == ctxfolder.ProjectionAltered || is == ctxfolder.ProjectionUnknown
		if err == nil && (is == ctxfolder.ProjectionEdited || altered) { // else another step did it
			err = ctxfolder.TrashCopy(r.Dir, ctxfolder.TrashDamaged, ctxfolder.MetadataFile)
		}
		if err == nil && is == ctxfolder.ProjectionEdited {
			err = r.writeMetadata(m.Clone())
		} else if err == nil && altered {
			_, err = r.Dir.WriteMetadata(m)
		}
		if err == nil {
			r.did(p, "written again, with what counts of it; was: %s", why)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.reportDone()
}

// exclusively runs f with the context locked and its index saved. r.Wait bounds only the wait for the locks.
func (r *repair) exclusively(ctx context.Context, f func() error) error {
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	return r.Log.Exclusively(limited, f)
}

// locked runs f with the context locked. It serves the steps that come before the index is reliable.
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

// setAside moves whatever is at a path of the context's folder to the trash.
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

// mend repairs the problems. What needs copies comes first, because a fold removes journals. Rows and journals come
// last, when every message has its row. A rebuilt index is saved at the beginning.
func (r *repair) mend(ctx context.Context, problems []problem) error {
	// Collect the errors of earlier writes now, so that later ones concern only the files of this repair.
	_ = r.Dir.SyncAll(&r.failures)
	err := r.exclusively(ctx, func() error {
		m, _, _, err := r.Log.Metadata()
		if m == nil {
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
	// What could not be repaired stays in its journal, and Fold reports that.
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
	return errors.Join(r.reportDone(), errors.Join(r.failed...))
}

func (r *repair) mendAll(ctx context.Context, problems []problem, mend func(problem) error) error {
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := mend(p); err != nil { // the other problems can still be repaired
			r.failed = append(r.failed, fmt.Errorf("%s %s: %w", p.Kind, cmp.Or(p.Path, p.ID.String()), err))
		}
	}
	return nil
}

// dropExplained removes messages whose file is missing in its place but exists elsewhere.
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

// sync makes the written files durable, with one call where the system has one.
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
