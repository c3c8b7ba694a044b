package ctxdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
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
}

// Check yields what is wrong with contexts: those of the ids, or without any all of the store, and then its blobs too. It
// changes nothing, takes no lock, and can run while others write. A context that cannot be looked at at all is a finding.
func (s *Store) Check(ctx context.Context, ids []uuid.UUID, o CheckOptions) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		more := true
		tell := func(f Finding) bool {
			more = more && yield(f, nil)
			return more
		}
		err := s.eachChecked(ctx, ids, o, func(c *integrity.Context) error { return c.Check(ctx, tell) }, func(id uuid.UUID, err error) error {
			tell(Finding{Context: id, Kind: integrity.KindContext, Severity: integrity.SeverityError, Detail: err.Error()})
			return nil
		}, func(p *integrity.Payloads) error {
			if len(ids) > 0 {
				return nil
			}
			return s.checkRest(ctx, p, o.ReadData, tell)
		}, &more)
		if err != nil && more {
			yield(Finding{}, public(Error{Op: "check", Path: s.path}, err))
		}
	}
}

// Repair mends what a check with ReadData finds, and yields what it did, each thing when it is durable. Of everything it
// replaces a copy goes to trash. What cannot be had any more is marked unavailable and stays listed. It looks without a lock,
// and locks a context to mend it. Done again, it does nothing. A context that cannot be mended comes as an error, and the
// others are gone on with.
func (s *Store) Repair(ctx context.Context, ids []uuid.UUID, o CheckOptions) iter.Seq2[Repaired, error] {
	return func(yield func(Repaired, error) bool) {
		if s.readOnly && !o.DryRun {
			yield(Repaired{}, public(Error{Op: "repair", Path: s.path}, ErrReadOnly))
			return
		}
		more := true
		err := s.eachChecked(ctx, ids, o, func(c *integrity.Context) error {
			return c.Repair(ctx, integrity.RepairOptions{DryRun: o.DryRun, Adopt: o.Adopt}, func(r Repaired) bool {
				more = more && yield(r, nil)
				return more
			})
		}, func(id uuid.UUID, err error) error {
			more = more && yield(Repaired{Context: id}, public(Error{Op: "repair", Context: id}, err))
			return nil
		}, func(*integrity.Payloads) error { return nil }, &more)
		if err != nil && more {
			yield(Repaired{}, public(Error{Op: "repair", Path: s.path}, err))
		}
	}
}

// eachChecked calls f for each of the contexts, without any for all of the store, failed for one that f returns an error of, and
// rest at the end.
func (s *Store) eachChecked(ctx context.Context, ids []uuid.UUID, o CheckOptions, f func(*integrity.Context) error, failed func(uuid.UUID, error) error, rest func(*integrity.Payloads) error, more *bool) error {
	payloads := &integrity.Payloads{Store: s.fs, Blobs: s.blobs}
	done := CheckProgress{}
	one := func(id uuid.UUID) error {
		before := done.Messages
		done.Context, done.Done, done.Of = id, 0, 0
		report := func() {
			if o.Progress != nil {
				o.Progress(done)
			}
		}
		err := s.withIntegrity(id, func(c *integrity.Context) error {
			c.Payloads, c.ReadData, c.Wait = payloads, o.ReadData, s.opts.lockTimeout
			c.Progress = func(p integrity.Progress) {
				done.Messages, done.Done, done.Of = before+p.Total, p.Messages, p.Of
				report()
			}
			return f(c)
		})
		done.Contexts++
		report()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: waited %v", ErrLocked, s.opts.lockTimeout)
		}
		if err != nil {
			return failed(id, err)
		}
		return nil
	}
	if len(ids) > 0 {
		for _, id := range ids {
			if err := one(id); err != nil || !*more {
				return err
			}
		}
		return rest(payloads)
	}
	for id, err := range s.IDs() {
		if err == nil {
			err = one(id)
		}
		if err != nil || !*more {
			return err
		}
	}
	return rest(payloads)
}

func (s *Store) withIntegrity(id uuid.UUID, f func(*integrity.Context) error) error {
	dir, err := ctxfolder.Open(s.fs, s.id, id)
	if err != nil {
		return err
	}
	log := s.openLog(dir)
	err = f(&integrity.Context{Dir: dir, Log: log})
	return errors.Join(err, log.Close(), dir.Close())
}

// checkRest looks at what belongs to no single context.
func (s *Store) checkRest(ctx context.Context, p *integrity.Payloads, readData bool, tell func(Finding) bool) error {
	for e, err := range s.fs.ReadDir(ctxfolder.Staging) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(e.Name()); !ok && !tell(Finding{
			Kind: integrity.KindStray, Severity: integrity.SeverityInfo, Path: ctxfolder.Staging + "/" + e.Name(), Detail: "nothing of ours",
		}) {
			return nil
		}
	}
	if !readData {
		return nil
	}
	for sum, err := range s.blobs.Walk(nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		why := p.Verify(sum)
		if why != nil && !errors.Is(why, fs.ErrNotExist) && !tell(Finding{
			Kind: integrity.KindBlob, Severity: integrity.SeverityWarning, Path: blob.Path(sum), Detail: "no message refers to it: " + why.Error(),
		}) {
			return nil
		}
	}
	return nil
}
