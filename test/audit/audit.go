package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// patience is how long to wait for a lock. Nobody is at work any more, so that none is held.
const patience = time.Second

// Round is what there is to be known of a time in which writers were at work, and were ended.
type Round struct {
	Before   Shown       // what the store showed before
	Shared   []uuid.UUID // contexts
	Accounts []string    // files
	Cut      time.Time   // when there was no disk any more; zero for never
	Faults   bool        // the disk refused writes, so that steps may have failed
	Bare     bool        // somebody deleted metadata.json, index.json and messages/ of every context
}

// accounts reads what the writers put down. What they were told behind a cut they would not have heard if their system
// had gone too: so that counts as what was going on. (A sync that waits while ext4 is shut down may be told that it
// succeeded.)
func (r Round) accounts() (accounts [][]writer.Step, err error) {
	for _, path := range r.Accounts {
		steps, err := writer.ReadAccount(path)
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, slices.DeleteFunc(steps, func(s writer.Step) bool {
			return s.State != writer.Begun && !r.Cut.IsZero() && s.Time.After(r.Cut)
		}))
	}
	return accounts, nil
}

// Outcome is what became of a round.
type Outcome struct {
	Acknowledged int            // messages, and other steps but tidying
	Findings     map[string]int // of the first check, by kind and severity
	Problems     []Problem
	Shown        Shown // for the next round
}

func (o Outcome) String() string {
	found := 0
	for _, n := range o.Findings {
		found += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d acknowledged, %d messages shown, %d findings", o.Acknowledged, o.Shown.Messages, found)
	for _, p := range o.Problems {
		fmt.Fprintf(&b, "\n    %s: %s", p.Trouble, p.Detail)
	}
	return b.String()
}

// Audit opens a store whose writers are gone, compares what it shows with their accounts, checks and repairs it, and
// goes on with it. Nothing is to be mended by hand: no lock, no leftover is in the way. The error is about the
// accounts, or ctx; what is wrong with the store is a problem.
func Audit(ctx context.Context, dir string, r Round) (Outcome, error) {
	accounts, err := r.accounts()
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Findings: map[string]int{}, Problems: failures(accounts, r.Faults)}
	if r.Bare {
		if err := removeViews(dir); err != nil {
			return Outcome{}, err
		}
	}
	s, err := ctxdir.Open(dir, ctxdir.Options{LockTimeout: patience})
	if err != nil {
		o.problem(Unreadable, "the store: %v", err)
		return o, nil
	}
	defer s.Close()
	o.audit(ctx, s, r, accounts)
	return o, ctx.Err()
}

// removeViews deletes what the logs and segments of contexts have, too.
func removeViews(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if _, err := uuid.Parse(e.Name()); err != nil {
			continue
		}
		for _, name := range []string{"metadata.json", "index.json", "messages"} {
			if err := os.RemoveAll(filepath.Join(dir, e.Name(), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *Outcome) problem(t Trouble, format string, args ...any) {
	o.Problems = append(o.Problems, Problem{t, fmt.Sprintf(format, args...)})
}

func (o *Outcome) audit(ctx context.Context, s *ctxdir.Store, r Round, accounts [][]writer.Step) {
	first, problems, err := read(ctx, s)
	if o.Problems = append(o.Problems, problems...); err != nil {
		o.problem(Unreadable, "the store: %v", err)
		return
	}
	e := compare(r.Before, first, r.Shared, accounts)
	o.Acknowledged, o.Problems = e.acked, append(o.Problems, e.problems...)
	o.repair(ctx, s, first, e.erasing)
	second, problems, err := read(ctx, s)
	if o.Problems = append(o.Problems, problems...); err != nil {
		o.problem(Unreadable, "the store: %v", err)
		return
	}
	o.Problems = append(o.Problems, first.same(second, e.erasing)...)
	o.goOn(ctx, s, r, accounts)
	if o.Shown, problems, err = read(ctx, s); err != nil {
		o.problem(Unreadable, "the store: %v", err)
	}
	o.Problems = append(o.Problems, problems...)
}

// repair checks, repairs, and checks again: then there must be nothing but a purge that the next collection completes, and
// an erase that another one completes.
// The first check finds warnings at the most: nothing here damages what was flushed.
func (o *Outcome) repair(ctx context.Context, s *ctxdir.Store, shown Shown, erasing map[name]bool) {
	for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil {
			o.problem(Unsettled, "check: %v", err)
			continue
		}
		o.Findings[fmt.Sprintf("%s (%s)", f.Kind, f.Severity)]++
		if f.Severity == "error" {
			read := "not read before"
			if _, ok := shown.sums[name{f.Context, f.ID}]; ok {
				read = "read whole before"
			}
			o.problem(Damaged, "%s: context %s, message %s (%s): %s: %s", f.Kind, f.Context, f.ID, read, f.Path, f.Detail)
		}
	}
	_, err := s.Repair(ctx, ctxdir.RepairOptions{All: true})
	for _, err := range writer.Parts(err) {
		o.problem(Unsettled, "repair: %v", err)
	}
	left := o.findings(ctx, s)
	interrupted := func(f ctxdir.Finding) bool { return f.Kind == "erasing" }
	if slices.ContainsFunc(left, interrupted) {
		if _, err := s.Collect(ctx, ctxdir.CollectOptions{All: true}); err != nil {
			o.problem(Unsettled, "collect after the repair: %v", err)
		}
		for n := range erasing {
			_, err := s.Erase(ctx, n.context, []uuid.UUID{n.id}, ctxdir.EraseOptions{Shared: true})
			if err != nil && !errors.Is(err, ctxdir.ErrNotExist) {
				o.problem(Unsettled, "erase message %s of context %s again: %v", n.id, n.context, err)
			}
		}
		left = append(slices.DeleteFunc(left, interrupted), o.findings(ctx, s)...)
	}
	for _, f := range left {
		o.problem(Unsettled, "%s (%s) is there after the repair: %s, %s %s", f.Kind, f.Severity, f.Context, f.Path, f.Detail)
	}
}

// findings returns what a check finds after the repair.
func (o *Outcome) findings(ctx context.Context, s *ctxdir.Store) (all []ctxdir.Finding) {
	for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil {
			o.problem(Unsettled, "check after the repair: %v", err)
			continue
		}
		all = append(all, f)
	}
	return all
}

// goOn does what comes next: an append to each context, where its branch ends; and what was being migrated is migrated.
func (o *Outcome) goOn(ctx context.Context, s *ctxdir.Store, r Round, accounts [][]writer.Step) {
	for _, id := range r.Shared {
		if err := next(ctx, s, id); err != nil {
			o.problem(Refused, "append to context %s: %v", id, err)
		}
	}
	for _, steps := range accounts {
		if len(steps) == 0 {
			continue
		}
		last := steps[len(steps)-1]
		if last.Op != writer.Migrate || last.State == writer.Done {
			continue
		}
		if err := migrateAgain(ctx, s, last); err != nil {
			o.problem(Refused, "migrate %s again: %v", last.Context, err)
		}
	}
}

func next(ctx context.Context, s *ctxdir.Store, id uuid.UUID) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := c.Active().Len(ctx)
	if err != nil {
		return err
	}
	_, err = c.Active().Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"and then?"}`)}, ctxdir.WriteOptions{Position: &n})
	return err
}

// migrateAgain finishes a migration that was cut off: the file is there, or it has its new name and there is a context.
func migrateAgain(ctx context.Context, s *ctxdir.Store, last writer.Step) error {
	_, err := s.Migrate(ctx, last.Path, ctxdir.MigrateOptions{})
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := s.Open(ctx, last.Context)
	if err != nil {
		return err
	}
	return c.Close()
}
