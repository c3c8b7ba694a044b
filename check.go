package ctxdir

import (
	"context"
	"iter"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Finding is a problem that a check found, or that a repair mended.
type Finding struct {
	Context    uuid.UUID
	Kind       string    // docs/RELIABILITY.md lists the kinds
	Severity   string    // "error", "warning" or "info"
	Path       string    // relative to the store; empty if the finding is not about a single file
	ID         uuid.UUID // of the message
	Detail     string    // what is wrong, or what the repair did
	Repairable bool
}

// CheckOptions says what to check or repair.
type CheckOptions struct {
	Contexts []uuid.UUID // these contexts
	All      bool        // every context of the store, and its blobs
	ReadData bool        // read every byte of messages and blobs; a repair always does
	DryRun   bool        // of a repair: only report what it would do
	Adopt    bool        // of a repair: adopt valid messages that were never committed here
	// Progress is called from time to time, and at least once for each context; may be nil.
	Progress func(CheckProgress)
	// Report receives each finding that a repair mended, when the result is durable; may be nil.
	Report func(Finding)
	// Failed receives the error of each context that a repair cannot mend; if set, the returned error omits these
	// failures.
	Failed func(error)
}

// CheckProgress is the progress of a check or a repair.
type CheckProgress struct {
	Context  uuid.UUID
	Contexts int   // number of contexts checked so far
	Messages int64 // number of messages checked so far, in all contexts
	Done, Of int64 // messages of the current line
	Left     int   // findings that the repair could not mend
}

func (o CheckOptions) engine() checking.Options {
	e := checking.Options{ReadData: o.ReadData, DryRun: o.DryRun, Adopt: o.Adopt}
	if o.Progress != nil {
		e.Progress = func(p checking.Progress) { o.Progress(CheckProgress(p)) }
	}
	return e
}

// Check yields the problems of contexts, including legacy ones. It changes nothing, takes no lock, and may run while
// writers run. A context that cannot be read at all is a finding.
func (s *Store) Check(ctx context.Context, o CheckOptions) iter.Seq2[Finding, error] {
	if !o.All && len(o.Contexts) == 0 {
		return func(func(Finding, error) bool) {}
	}
	return each(checking.Check(ctx, s.e, o.Contexts, o.engine()), func(f integrity.Finding) Finding {
		return Finding{f.Context, string(f.Kind), string(f.Severity), f.Path, f.ID, f.Detail, f.Repairable}
	})
}

// Repair mends what a check finds, and returns what it did. The trash keeps a copy of everything that it replaces. A
// message without any copy is marked unavailable and keeps its position. Repair checks without a lock, and locks a
// context to mend it. A second call does nothing. The error includes each context that it could not mend; the others
// are still processed.
func (s *Store) Repair(ctx context.Context, o CheckOptions) ([]Finding, error) {
	if !o.All && len(o.Contexts) == 0 {
		return nil, nil
	}
	return collect(checking.Repair(ctx, s.e, o.Contexts, o.engine()), o.Report, o.Failed, repaired)
}

func repaired(r integrity.Repaired) Finding {
	return Finding{Context: r.Context, Kind: string(r.Kind), Path: r.Path, ID: r.ID, Detail: r.Detail}
}

// RepairStore rewrites the store's own file, ctxdir.json, if it is damaged or missing. It takes the id from the
// contexts; the settings are lost. The damaged file moves to the trash. Until then, [Open] fails with [ErrDamaged], and
// only a store that is opened with [WithReadOnly] shows its contexts. RepairStore returns what it did, or nothing if
// the file is intact. It fails with [ErrFormat] if a newer version of the program made the store.
func RepairStore(dir string, opts ...Option) ([]Finding, error) {
	done, err := engine.RepairStore(dir, engineOptions(opts)...)
	if err != nil || done == "" {
		return nil, wrap(err)
	}
	return []Finding{{Kind: string(integrity.KindStore), Path: engine.StoreFile, Detail: done}}, nil
}
