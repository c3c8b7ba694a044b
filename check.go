package ctxdir

import (
	"context"
	"iter"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Finding is something that is not in order, or that a repair mended.
type Finding struct {
	Context    uuid.UUID
	Kind       string    // docs/RELIABILITY.md lists the kinds
	Severity   string    // "error", "warning" or "info"
	Path       string    // relative to the store; empty when it is about no single file
	ID         uuid.UUID // of the message
	Detail     string    // what is wrong, or what the repair did
	Repairable bool
}

// CheckOptions say what to check or repair.
type CheckOptions struct {
	Contexts []uuid.UUID // these contexts
	All      bool        // every context of the store, and its blobs
	ReadData bool        // read every byte of messages and blobs; a repair always does
	DryRun   bool        // of a repair: only report what it would do
	Adopt    bool        // of a repair: take in valid messages that were never committed here
	// Progress is called now and then, and once for each context at least; nil for no calls.
	Progress func(CheckProgress)
	// Report is called for each thing that a repair mended, when it is durable; nil for no calls.
	Report func(Finding)
	// Failed is called for each context that a repair cannot mend, which then is no part of the error; nil for no calls.
	Failed func(error)
}

// CheckProgress is how far a check or a repair has come.
type CheckProgress struct {
	Context  uuid.UUID
	Contexts int   // looked at
	Messages int64 // looked at, in all contexts
	Done, Of int64 // messages of the present line
	Left     int   // things that the repair could not mend
}

func (o CheckOptions) engine() engine.CheckOptions {
	e := engine.CheckOptions{ReadData: o.ReadData, DryRun: o.DryRun, Adopt: o.Adopt}
	if o.Progress != nil {
		e.Progress = func(p engine.CheckProgress) { o.Progress(CheckProgress(p)) }
	}
	return e
}

// Check yields what is wrong with contexts, legacy ones included. It changes nothing, takes no lock and runs beside
// writers. A context that cannot be read at all is a finding.
func (s *Store) Check(ctx context.Context, o CheckOptions) iter.Seq2[Finding, error] {
	if !o.All && len(o.Contexts) == 0 {
		return func(func(Finding, error) bool) {}
	}
	return each(s.e.Check(ctx, o.Contexts, o.engine()), func(f integrity.Finding) Finding {
		return Finding{f.Context, string(f.Kind), string(f.Severity), f.Path, f.ID, f.Detail, f.Repairable}
	})
}

// Repair mends what a check finds, and returns what it did. The trash keeps a copy of everything that it replaces. A
// message without any copy is marked unavailable and keeps its position. Repair looks without a lock, and locks a
// context to mend it. Repeated, it does nothing. A context that it cannot mend is part of the error, and the others are
// mended.
func (s *Store) Repair(ctx context.Context, o CheckOptions) ([]Finding, error) {
	if !o.All && len(o.Contexts) == 0 {
		return nil, nil
	}
	return collect(s.e.Repair(ctx, o.Contexts, o.engine()), o.Report, o.Failed, repaired)
}

func repaired(r integrity.Repaired) Finding {
	return Finding{Context: r.Context, Kind: string(r.Kind), Path: r.Path, ID: r.ID, Detail: r.Detail}
}

// RepairStore writes ctxdir.json, the store's own file, again when it is damaged or missing: with the id that the
// contexts have, and without settings. The damaged file goes to the trash. Until then [Open] fails with [ErrDamaged],
// and only a store that is opened with [WithReadOnly] shows its contexts. RepairStore returns what it did, nothing when
// the file is in order. It fails with [ErrFormat] when a newer version of the program made the store.
func RepairStore(dir string, opts ...Option) ([]Finding, error) {
	r, done, err := engine.RepairStore(dir, engineOptions(opts)...)
	if err != nil || !done {
		return nil, wrap(err)
	}
	return []Finding{repaired(r)}, nil
}
