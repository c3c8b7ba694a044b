package integrity

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
)

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
		if err := r.Index.Rescue(broken, index.Rescuer{Copy: r.copyOf, Keep: r.keep, Hidden: r.keepHidden}); err != nil {
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
	for _, name := range unlinked {
		if err := r.setAside(name); err != nil {
			return err
		}
		r.did(r.divergent(problems, name), "moved to the trash: it belongs to a divergent history")
	}
	if err := r.mendMetadata(); err != nil {
		return err
	}
	r.mendLines(problems)
	return nil
}

// divergent returns the problem with a file of another history. There is a new one if only the rescue has made it such a file.
func (r *repair) divergent(problems []problem, name string) problem {
	kind := KindLog
	if strings.HasPrefix(name, ctxfolder.Segments+"/") {
		kind = KindSegment
	}
	for _, p := range problems {
		if p.Kind == kind && r.inContext(p) == name {
			return p
		}
	}
	return repairable(kind, SeverityWarning, r.Dir.ID.String()+"/"+name, "")
}
