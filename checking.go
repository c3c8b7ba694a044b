package ctxdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
)

// What check and repair tell; package integrity names the kinds.
type (
	// Finding is one thing that is not as it should be.
	Finding = integrity.Finding
	// Repaired is one thing that was mended, or would be.
	Repaired = integrity.Repaired
	// Severity says how bad a finding is.
	Severity = integrity.Severity
)

// The severities.
const (
	SeverityError   = integrity.SeverityError   // something cannot be read
	SeverityWarning = integrity.SeverityWarning // everything can be read that ever can; something is not as it was committed
	SeverityInfo    = integrity.SeverityInfo    // in order, and good to know
)

// CheckOptions say how a check or a repair goes about it.
type CheckOptions struct {
	ReadData bool                // read every byte of messages and blobs; a repair does in any case
	DryRun   bool                // of a repair: tell what would be done
	Adopt    bool                // of a repair: take in valid messages that were never committed here
	Progress func(CheckProgress) // called now and then, for each context at least once; nil for not
}

// CheckProgress is how far a check or a repair has come.
type CheckProgress struct {
	Context  uuid.UUID
	Contexts int   // that were looked at
	Messages int64 // that were looked at in all of them
	Done, Of int64 // messages of the line that is looked at
	Left     int   // things that a repair could not mend
}

// errStopped ends a check whose results nobody wants any more.
var errStopped = errors.New("stopped")

// Check yields what is wrong with contexts, legacy ones too: those of the ids, or without any all of the store, and then its blobs too. It
// changes nothing, takes no lock, and can run while others write. A context that cannot be looked at at all is a finding.
func (s *Store) Check(ctx context.Context, ids []uuid.UUID, o CheckOptions) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		c := s.newChecking(o)
		stopped := false
		tell := func(f Finding) bool {
			stopped = stopped || !yield(f, nil)
			return !stopped
		}
		if s.problem != nil {
			tell(s.brokenFile())
		}
		err := c.each(ctx, ids, func(id uuid.UUID) (err error) {
			if stopped {
				return errStopped
			}
			if name, ok := s.legacyAt(id); ok {
				tell(c.legacy(id, name))
			} else {
				err = c.with(id, func(x *integrity.Context) error { return x.Check(ctx, tell) })
			}
			if err != nil && len(ids) == 0 && s.went(id) {
				err = nil
			}
			if err != nil && ctx.Err() == nil && !vfs.IsShortage(err) {
				tell(Finding{Context: id, Kind: integrity.KindContext, Severity: SeverityError, Detail: err.Error()})
				err = nil
			}
			if stopped {
				return errStopped
			}
			return err
		})
		if err == nil && len(ids) == 0 {
			err = c.store().Check(ctx, tell)
		}
		if err != nil && !stopped {
			yield(Finding{}, public(Error{Op: "check", Path: s.path}, err))
		}
	}
}

// Repair mends what a check with ReadData finds, and yields what it did, each thing when it is durable. Of everything it
// replaces a copy goes to trash. What cannot be had any more is marked unavailable and stays listed. Without ids, damaged blobs
// that nothing refers to go to trash too, unless some context cannot be mended. It looks without a lock,
// and locks a context to mend it. Done again, it does nothing. A context that cannot be mended comes as an error, with its
// id, and the others are gone on with.
func (s *Store) Repair(ctx context.Context, ids []uuid.UUID, o CheckOptions) iter.Seq2[Repaired, error] {
	return func(yield func(Repaired, error) bool) {
		if s.readOnly && !o.DryRun {
			yield(Repaired{}, public(Error{Op: "repair", Path: s.path}, ErrReadOnly))
			return
		}
		c := s.newChecking(o)
		stopped := false
		tell := func(r Repaired) bool {
			stopped = stopped || !yield(r, nil)
			return !stopped
		}
		if s.problem != nil {
			f := s.brokenFile()
			tell(Repaired{Kind: f.Kind, Path: f.Path, Detail: f.Detail + "; would be written again"})
		}
		mend := func(mend func(context.Context, bool, func(Repaired) bool) (int, error)) {
			left, err := mend(ctx, o.DryRun, tell)
			c.done.Left += left
			c.report()
			if err != nil && !stopped {
				stopped = !yield(Repaired{}, public(Error{Op: "repair", Path: s.path}, err))
			}
		}
		if len(ids) == 0 {
			mend(c.store().RepairNames)
			if stopped {
				return
			}
			if mend(c.store().Repair); stopped {
				return
			}
		}
		unread := false // what some context refers to is not known
		err := c.each(ctx, ids, func(id uuid.UUID) error {
			if name, ok := s.legacyAt(id); ok {
				if c.legacy(id, name).Severity == SeverityError {
					c.done.Left++
				}
				return nil
			}
			err := c.with(id, func(x *integrity.Context) error {
				left, err := x.Repair(ctx, integrity.RepairOptions{DryRun: o.DryRun, Adopt: o.Adopt}, tell)
				c.done.Left += left
				return err
			})
			if err != nil && len(ids) == 0 && s.went(id) {
				err = nil
			}
			if err != nil && ctx.Err() == nil {
				unread = true
				stopped = !yield(Repaired{Context: id}, public(Error{Op: "repair", Context: id}, err))
				err = nil
			}
			if stopped {
				return errStopped
			}
			return err
		})
		if err != nil && !stopped {
			yield(Repaired{}, public(Error{Op: "repair", Path: s.path}, err))
		} else if err == nil && len(ids) == 0 && !unread {
			mend(c.store().RepairBlobs)
		}
	}
}

// checking goes through contexts.
type checking struct {
	s        *Store
	o        CheckOptions
	payloads *integrity.Payloads
	done     CheckProgress
}

func (s *Store) newChecking(o CheckOptions) *checking {
	return &checking{s: s, o: o, payloads: &integrity.Payloads{Store: s.fs, Blobs: s.blobs, Alone: s.blobsAlone}}
}

// each calls f for each of the contexts, without any for all of the store.
func (c *checking) each(ctx context.Context, ids []uuid.UUID, f func(uuid.UUID) error) error {
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
	for e, err := range c.s.entries() {
		if err == nil && !e.folder && c.s.Legacy(e.id) == "" {
			continue // no legacy context
		}
		if err == nil {
			err = one(e.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// went reports whether a context that was there is not any more: then nothing is wrong with it.
func (s *Store) went(id uuid.UUID) bool {
	_, err := s.fs.Lstat(id.String())
	return errors.Is(err, fs.ErrNotExist)
}

func (c *checking) report() {
	if c.o.Progress != nil {
		c.o.Progress(c.done)
	}
}

// legacy tells of a legacy context that lies in the store. What is wrong with it no repair can mend.
func (c *checking) legacy(id uuid.UUID, name string) Finding {
	f := Finding{Context: id, Kind: integrity.KindLegacy, Severity: SeverityInfo, Path: name, Detail: "a legacy context, not migrated yet"}
	if err := c.readLegacy(name); err != nil {
		f.Severity, f.Detail = SeverityError, err.Error()
	}
	return f
}

func (c *checking) readLegacy(name string) error {
	f, err := legacy.Open(c.s.fs, name, legacy.Options{Limit: c.s.opts.maxMessage})
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

// with opens a context for f.
func (c *checking) with(id uuid.UUID, f func(*integrity.Context) error) error {
	s, before := c.s, c.done.Messages
	dir, err := ctxfolder.Open(s.fs, s.id, id)
	if err != nil {
		return err
	}
	log := s.openLog(dir)
	err = f(&integrity.Context{
		Dir: dir, Log: log, Payloads: c.payloads, ReadData: c.o.ReadData, Wait: s.opts.lockTimeout, Pause: s.opts.pause,
		Progress: func(p integrity.Progress) {
			c.done.Messages, c.done.Done, c.done.Of = before+p.Total, p.Messages, p.Of
			c.report()
		},
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: waited %v", ErrLocked, s.opts.lockTimeout)
	}
	return errors.Join(err, log.Close(), dir.Close())
}

// store is what belongs to no single context.
func (c *checking) store() *integrity.Store {
	return &integrity.Store{FS: c.s.fs, Payloads: c.payloads, ReadData: c.o.ReadData, Alone: c.s.contextAlone}
}

// contextAlone runs f while nobody writes to a context, which need not be there.
func (s *Store) contextAlone(ctx context.Context, id uuid.UUID, f func() error) error {
	for _, name := range []string{id.String() + ".fold", id.String()} {
		lock := s.fs.Lock(ctxfolder.Locks + "/" + name)
		defer lock.Close()
		if err := s.acquire(ctx, lock); err != nil {
			return err
		}
		defer lock.Release()
	}
	return f()
}
