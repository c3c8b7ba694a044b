package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/views"
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
	opts     RepairOptions
	yield    func(Repaired) bool
	left     int     // problems that nothing can repair
	failed   []error // errors of failed repairs
	logsLost bool    // records of a log are lost: the files of messages may prove what was in it

	last  *index.Commit   // that may not be durable
	size  int             // of it and those before
	after []func() error  // to do when it is
	dirs  map[string]bool // folders to sync
	done  []Repaired
}

// Repair fixes what a check with ReadData finds, and yields what it did. It moves what it replaces to the trash. The
// order is history, metadata, messages, payloads; Repair reports a change only once it is durable. A second Repair
// changes nothing. left is the number of problems that remain.
func (c *Context) Repair(ctx context.Context, o RepairOptions, yield func(Repaired) bool) (left int, err error) {
	c.ReadData = true
	r := &repair{opts: o, yield: yield, dirs: map[string]bool{}}
	r.examination = &examination{Context: c, alone: true, found: map[place]bool{}, blocked: map[string]bool{}}
	err = r.run(ctx)
	if errors.Is(err, errStopped) {
		err = nil
	}
	return r.left, err
}

func (r *repair) run(ctx context.Context) error {
	problems, err := r.collect(ctx)
	if err == nil && r.opts.DryRun {
		r.count(problems)
		return r.plan(r.choose(problems))
	}
	isFolder := func(p problem) bool { return p.Kind == KindFolder }
	if err == nil && slices.ContainsFunc(problems, isFolder) {
		if err = r.locked(ctx, func() error { return r.mendAll(ctx, problems, r.mendFolder) }); err == nil {
			problems, err = r.collect(ctx)
		}
	}
	if err == nil && slices.ContainsFunc(problems, func(p problem) bool { return p.isFirst() }) {
		err = r.locked(ctx, func() error { return r.mendHistory(problems) })
		if err == nil && slices.ContainsFunc(problems, func(p problem) bool { return p.isBroken() || p.Kind == KindStructure }) {
			problems, err = r.collect(ctx)
		}
	}
	if err != nil {
		return err
	}
	const most = 256 // others write in between
	for all := range slices.Chunk(r.choose(problems), most) {
		if err := r.exclusively(ctx, func() error { return r.mendAll(ctx, all, r.mendOne) }); err != nil {
			return err
		}
	}
	if r.opts.Adopt || r.logsLost {
		if err := r.exclusively(ctx, func() error { return r.adopt(problems) }); err != nil {
			return err
		}
	}
	r.count(problems)
	if slices.ContainsFunc(problems, func(p problem) bool { return p.Kind == KindStructure }) {
		if err := r.exclusively(ctx, r.mendBases); err != nil { // last: its parent may have got messages back
			return err
		}
	}
	return errors.Join(r.failed...)
}

// count counts the problems that a repair leaves, but for those of the structure, which mendBases counts.
func (r *repair) count(problems []problem) {
	for _, p := range problems {
		if p.Severity != SeverityInfo && !p.Repairable && p.Kind != KindStructure {
			r.left += cmp.Or(p.several, 1)
		}
	}
}

// collect examines the context.
func (r *repair) collect(ctx context.Context) (problems []problem, err error) {
	err = r.examine(ctx, func(p problem) bool {
		problems = append(problems, p)
		return true
	})
	r.logsLost = r.logsLost || slices.ContainsFunc(problems, func(p problem) bool { return p.isBroken() && p.Kind == KindLog })
	return problems, err
}

// isFirst reports whether a problem is repaired before the messages are examined.
func (p *problem) isFirst() bool {
	return p.Repairable && slices.Contains([]Kind{KindLog, KindSegment, KindMetadata, KindStructure}, p.Kind)
}

// order returns 1 for a problem that is repaired after others.
func (p *problem) order() int {
	if p.Kind == KindFound {
		return 1
	}
	return 0
}

// choose returns the problems to repair, in order: of several files of a lost message, the newest comes first.
func (r *repair) choose(problems []problem) []problem {
	problems = slices.DeleteFunc(slices.Clone(problems), func(p problem) bool {
		return !p.Repairable && (!r.opts.DryRun || !r.opts.Adopt || p.Kind != KindForeign)
	})
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), a.order()*b.storedAt.Compare(a.storedAt))
	})
	return problems
}

// plan yields what a repair would do.
func (r *repair) plan(problems []problem) error {
	for _, p := range problems {
		would := "would repair it"
		switch {
		case p.Kind == KindForeign:
			would = "would commit it"
		case p.isBroken():
			would = "would keep what is intact"
		}
		if !r.yield(Repaired{Context: p.Context, Kind: p.Kind, Path: p.Path, ID: p.ID, Detail: p.Detail + "; " + would}) {
			return errStopped
		}
	}
	return nil
}

func (r *repair) did(p problem, format string, args ...any) {
	r.done = append(r.done, Repaired{Context: r.Dir.ID, Kind: p.Kind, Path: p.Path, ID: p.ID, Detail: fmt.Sprintf(format, args...)})
}

// locked runs f with the context locked. It serves the step that comes before the history can be read. r.Wait bounds only
// the wait for the locks.
func (r *repair) locked(ctx context.Context, f func() error) error {
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	if err := r.Dir.SealLock.Acquire(limited); err != nil {
		return err
	}
	defer r.Dir.SealLock.Release()
	if err := r.Dir.Lock.Acquire(limited); err != nil {
		return err
	}
	defer r.Dir.Lock.Release()
	err := r.Dir.Check()
	if err == nil {
		err = f()
	}
	if err == nil {
		err = r.flush()
	}
	return err
}

// exclusively is locked with the log ready for records, and the metadata current.
func (r *repair) exclusively(ctx context.Context, f func() error) error {
	return r.locked(ctx, func() error {
		if err := r.prepare(); err != nil {
			return err
		}
		return f()
	})
}

func (r *repair) prepare() error {
	r.note = nil
	if err := r.Index.Prepare(); err != nil {
		return err
	}
	return r.readMetadata()
}

func (r *repair) readMetadata() (err error) {
	r.metadata, _, err = r.effective()
	if r.metadata != nil || errors.Is(err, ctxfolder.ErrMetadata) {
		return nil
	}
	return err
}

// commit commits a record, and notes what to do when it is durable. The caller holds the locks.
func (r *repair) commit(item journal.Item, after func() error) error {
	if r.size += len(item.Body); r.size > 16<<20 {
		if err := r.flush(); err != nil {
			return err
		}
	}
	commit := r.Index.Append([]journal.Item{item}, false)
	if commit.Err == nil {
		r.last, r.after = commit, append(r.after, after)
	}
	return commit.Err
}

// flush makes durable what was done, and yields it.
//
// Crash order: the records are durable before the files change that they are about. Removals, and moves to the trash, are
// durable last: what comes back is found again.
func (r *repair) flush() error {
	if r.last != nil {
		if err := r.last.Sync(); err != nil {
			return err
		}
	}
	for _, f := range r.after {
		if err := f(); err != nil {
			return err
		}
	}
	for dir := range r.dirs {
		if err := r.Dir.FS.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	clear(r.dirs)
	done := r.done
	r.last, r.size, r.after, r.done = nil, 0, nil, nil
	for _, d := range done {
		if !r.yield(d) {
			return errStopped
		}
	}
	return nil
}

// setAside moves whatever is at a path of the context's folder to the trash.
func (r *repair) setAside(name string) error {
	_, err := r.Dir.FS.Lstat(name)
	if err == nil {
		r.dirs[path.Dir(name)] = true
		err = r.Dir.SetAside(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes a file for good.
func (r *repair) remove(name string) error {
	r.dirs[path.Dir(name)] = true
	if err := r.Dir.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *repair) mendAll(ctx context.Context, problems []problem, mend func(problem) error) error {
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := mend(p); err != nil {
			r.fail(p, err)
		}
	}
	return nil
}

// fail notes why a problem could not be repaired. The others still can.
func (r *repair) fail(p problem, err error) {
	r.failed = append(r.failed, fmt.Errorf("%s %s: %w", p.Kind, cmp.Or(p.Path, p.ID.String()), err))
}

// mendFolder moves anything else in the place of a folder to the trash.
func (r *repair) mendFolder(p problem) error {
	if p.Kind != KindFolder {
		return nil
	}
	info, err := r.Dir.FS.Lstat(p.found)
	if err == nil && !info.IsDir() {
		err = r.setAside(p.found)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.Dir.ForgetFolders()
	r.did(p, "moved to the trash: it was not a folder")
	return nil
}

// mendHistory repairs logs and segments, then the metadata. What belongs to another history moves to the trash.
func (r *repair) mendHistory(problems []problem) error {
	if err := r.readMetadata(); err != nil {
		return err
	}
	var broken []index.Problem
	for _, p := range problems {
		if p.isBroken() {
			broken = append(broken, index.Problem{File: p.file})
			r.did(p, "kept what is intact; was: %s", p.Detail)
		}
	}
	if len(broken) > 0 {
		if err := r.Index.Rescue(broken, index.Rescuer{Copy: r.copyOf, Keep: r.keep}); err != nil {
			return err
		}
	}
	if err := r.prepare(); err != nil {
		return err
	}
	unlinked, err := r.Index.Tidy()
	if err != nil {
		return err
	}
	for _, p := range problems {
		name := r.inContext(p)
		if (p.Kind != KindLog && p.Kind != KindSegment) || p.isBroken() || !slices.Contains(unlinked, name) {
			continue
		}
		if err := r.setAside(name); err != nil {
			return err
		}
		r.did(p, "moved to the trash: %s", p.Detail)
	}
	if err := r.mendMetadata(); err != nil {
		return err
	}
	r.mendLines(problems)
	return nil
}

// keep copies a damaged file to the trash.
func (r *repair) keep(name string) error {
	return ctxfolder.TrashCopy(r.Dir, ctxfolder.TrashDamaged, name)
}

// copyOf returns a message from its file, byte for byte as it was committed, or nil.
func (r *repair) copyOf(e *index.Entry) []byte {
	if r.metadata == nil || e.ID == uuid.Nil {
		return nil
	}
	line, ok := r.metadata.Line(e.Line)
	if !ok {
		return nil
	}
	raw, is, _ := views.Read(r.Dir, line.Folder, e)
	if is != views.Exact {
		return nil
	}
	return raw
}
