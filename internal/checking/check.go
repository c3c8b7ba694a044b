// Package checking checks and repairs the contexts of an open store, one after another, and what belongs to no context.
// Package integrity examines each.
package checking

import (
	"context"
	"errors"
	"fmt"
	"iter"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Options configures a check or a repair.
type Options struct {
	ReadData bool           // read every byte of messages and blobs; a repair always does
	DryRun   bool           // of a repair: report what it would do
	Adopt    bool           // of a repair: adopt valid messages that were never committed here
	Progress func(Progress) // called now and then, at least once for each context; nil for no reports
}

// Progress is the progress of a check or a repair.
type Progress struct {
	Context  uuid.UUID
	Contexts int   // examined so far
	Messages int64 // examined so far, in all contexts
	Done, Of int64 // messages of the current line
	Left     int   // things that a repair could not repair
}

// Check yields the findings for the contexts of the ids, legacy ones included; without ids, for the whole store. It
// changes nothing, takes no lock, and can run beside writers. A context that cannot be examined is a finding.
func Check(ctx context.Context, s *engine.Store, ids []uuid.UUID, o Options) iter.Seq2[integrity.Finding, error] {
	return func(yield func(integrity.Finding, error) bool) {
		c := newChecker(s, o)
		stopped := false
		report := func(f integrity.Finding) bool {
			stopped = stopped || !yield(f, nil)
			return !stopped
		}
		if s.Problem() != nil {
			report(brokenFile(s))
		}
		err := c.each(ctx, ids, func(id uuid.UUID) (err error) {
			if stopped {
				return errStopped
			}
			switch name, lerr := s.LegacyAt(id); {
			case lerr != nil:
				err = lerr
			case name != "":
				report(c.legacy(id, name))
			default:
				err = c.withContext(id, func(x *integrity.Context) error { return x.Check(ctx, report) })
			}
			if err != nil && len(ids) == 0 && s.WasRemoved(id) {
				err = nil
			}
			if err != nil && ctx.Err() == nil && !vfs.IsShortage(err) {
				report(integrity.Finding{Context: id, Kind: integrity.KindContext, Severity: integrity.SeverityError, Detail: err.Error()})
				err = nil
			}
			if stopped {
				return errStopped
			}
			return err
		})
		if err == nil && len(ids) == 0 {
			err = c.outside().check(ctx, report)
		}
		if err != nil && !stopped {
			yield(integrity.Finding{}, engine.Wrap(engine.Error{Op: "check", Path: s.Path()}, err))
		}
	}
}

// Repair fixes what a check with ReadData finds, and yields each change once it is durable. A copy of everything it
// replaces moves to the trash. What is lost is marked unavailable and stays listed. Without ids, damaged blobs that
// nothing refers to go to the trash too, unless a context cannot be repaired. Repair looks without a lock, and locks a
// context to repair it. A second run does nothing. A context that cannot be repaired comes with its id and an error, and
// the others follow.
func Repair(ctx context.Context, s *engine.Store, ids []uuid.UUID, o Options) iter.Seq2[integrity.Repaired, error] {
	return func(yield func(integrity.Repaired, error) bool) {
		if s.ReadOnly && !o.DryRun {
			yield(integrity.Repaired{}, engine.Wrap(engine.Error{Op: "repair", Path: s.Path()}, engine.ErrReadOnly))
			return
		}
		c := newChecker(s, o)
		stopped := false
		report := func(r integrity.Repaired) bool {
			stopped = stopped || !yield(r, nil)
			return !stopped
		}
		if s.Problem() != nil {
			f := brokenFile(s)
			report(integrity.Repaired{Kind: f.Kind, Path: f.Path, Detail: f.Detail + "; would rewrite it"})
		}
		mend := func(mend func(context.Context, bool, func(integrity.Repaired) bool) (int, error)) {
			left, err := mend(ctx, o.DryRun, report)
			c.done.Left += left
			c.report()
			if err != nil && !stopped {
				stopped = !yield(integrity.Repaired{}, engine.Wrap(engine.Error{Op: "repair", Path: s.Path()}, err))
			}
		}
		if len(ids) == 0 {
			if mend(c.outside().repair); stopped {
				return
			}
		}
		unread := false // the references of some context are unknown
		err := c.each(ctx, ids, func(id uuid.UUID) error {
			name, err := s.LegacyAt(id)
			switch {
			case err != nil:
			case name != "":
				if c.legacy(id, name).Severity == integrity.SeverityError {
					c.done.Left++
				}
			default:
				err = c.withContext(id, func(x *integrity.Context) error {
					left, err := x.Repair(ctx, integrity.RepairOptions{DryRun: o.DryRun, Adopt: o.Adopt}, report)
					c.done.Left += left
					return err
				})
			}
			if err != nil && len(ids) == 0 && s.WasRemoved(id) {
				err = nil
			}
			if err != nil && ctx.Err() == nil {
				unread = true
				stopped = !yield(integrity.Repaired{Context: id}, engine.Wrap(engine.Error{Op: "repair", Context: id}, err))
				err = nil
			}
			if stopped {
				return errStopped
			}
			return err
		})
		if err != nil && !stopped {
			yield(integrity.Repaired{}, engine.Wrap(engine.Error{Op: "repair", Path: s.Path()}, err))
		} else if err == nil && len(ids) == 0 && !unread {
			mend(c.outside().repairBlobs)
		}
	}
}

// checker is the state of one check or repair.
type checker struct {
	s        *engine.Store
	o        Options
	payloads *integrity.Payloads
	done     Progress
}

func newChecker(s *engine.Store, o Options) *checker {
	return &checker{s: s, o: o, payloads: &integrity.Payloads{Store: s.FS, Blobs: s.Blobs, Alone: s.BlobsAlone}}
}

// each calls f for each of the contexts, or without ids for all contexts of the store.
func (c *checker) each(ctx context.Context, ids []uuid.UUID, f func(uuid.UUID) error) error {
	one := func(id uuid.UUID) error {
		c.done.Context, c.done.Done, c.done.Of = id, 0, 0
		err := f(id)
		c.done.Contexts++
		c.report()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	for _, id := range ids {
		if err := one(id); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		return nil
	}
	for e, err := range c.s.Entries() {
		if err == nil && !e.Folder {
			if format, err := c.s.Legacy(e.ID); err == nil && format == "" {
				continue // not a legacy context
			}
		}
		if err == nil {
			err = one(e.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) report() {
	if c.o.Progress != nil {
		c.o.Progress(c.done)
	}
}

// legacy returns the finding for a legacy context in the store. A repair cannot repair damage in it.
func (c *checker) legacy(id uuid.UUID, name string) integrity.Finding {
	f := integrity.Finding{Context: id, Kind: integrity.KindLegacy, Severity: integrity.SeverityInfo, Path: name}
	f.Detail = "legacy context, not migrated"
	if err := c.readLegacy(name); err != nil {
		f.Severity, f.Detail = integrity.SeverityError, err.Error()
	}
	return f
}

func (c *checker) readLegacy(name string) error {
	f, err := legacy.Open(c.s.FS, name, legacy.Options{Limit: c.s.Options.MaxMessage})
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range f.Len() {
		if !c.o.ReadData {
			break
		}
		if _, err := f.Node(int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// withContext opens a context for f.
func (c *checker) withContext(id uuid.UUID, f func(*integrity.Context) error) error {
	s, before := c.s, c.done.Messages
	dir, err := ctxfolder.Open(s.FS, s.ID(), id)
	if err != nil {
		return err
	}
	ix := s.IndexOf(dir)
	defer ix.Close()
	err = f(&integrity.Context{
		Dir: dir, Index: ix, Payloads: c.payloads, ReadData: c.o.ReadData, Wait: s.Options.LockTimeout, Pause: s.Options.Pause,
		Progress: func(p integrity.Progress) {
			c.done.Messages, c.done.Done, c.done.Of = before+p.Total, p.Messages, p.Of
			c.report()
		},
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: waited %v", engine.ErrLocked, s.Options.LockTimeout)
	}
	return errors.Join(err, dir.Close())
}

// outside returns the checker for what belongs to no single context.
func (c *checker) outside() *outside {
	return &outside{c.s.FS, c.payloads, c.o.ReadData}
}

// brokenFile returns the finding about ctxdir.json.
func brokenFile(s *engine.Store) integrity.Finding {
	return integrity.Finding{
		Kind: integrity.KindStore, Severity: integrity.SeverityError, Path: engine.StoreFile, Detail: s.FileProblem().Error(), Repairable: true,
	}
}
