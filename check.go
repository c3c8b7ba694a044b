package ctxdir

import (
	"context"
	"iter"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// FindingKind is the kind of a finding; docs/RELIABILITY.md lists the kinds.
type FindingKind string

// Severity says how bad a finding is.
type Severity string

// The severities of findings.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Finding is a problem that a check found, or that a repair mended.
type Finding struct {
	Context    uuid.UUID
	Kind       FindingKind
	Severity   Severity
	Path       string    // relative to the store; empty if the finding is not about a single file
	ID         uuid.UUID // of the message
	Detail     string    // what is wrong, or what the repair did
	Repairable bool
}

// CheckOptions says what to check: Contexts, or All.
type CheckOptions struct {
	Contexts []uuid.UUID // these contexts
	All      bool        // every context of the store, and its blobs
	ReadData bool        // read every byte of messages and blobs
	// Progress is called from time to time, and at least once for each context; may be nil.
	Progress func(CheckProgress)
}

// RepairOptions says what to repair: Contexts, or All.
type RepairOptions struct {
	Contexts []uuid.UUID // these contexts
	All      bool        // every context of the store, and its blobs
	DryRun   bool        // only report what would be done
	Adopt    bool        // adopt valid messages that were never committed here
	// Progress is called from time to time, and at least once for each context; may be nil.
	Progress func(CheckProgress)
	// Report receives each finding that was repaired, when the result is durable; may be nil.
	Report func(Finding)
	// Failed receives the error of each context that cannot be repaired; if set, the returned error omits these failures.
	Failed func(error)
}

// CheckProgress is the progress of a check or a repair.
type CheckProgress struct {
	Context  uuid.UUID
	Contexts int   // number of contexts checked so far
	Messages int64 // number of messages checked so far, in all contexts
	Done, Of int64 // messages of the current line
	Left     int   // findings that the repair could not repair
}

func progressOf(f func(CheckProgress)) func(checking.Progress) {
	if f == nil {
		return nil
	}
	return func(p checking.Progress) { f(CheckProgress(p)) }
}

// Check yields the problems of contexts, including legacy ones. It changes nothing, takes no lock, and may run while
// writers run. A context that cannot be read at all is a finding. Check fails with [ErrInvalid] unless o says what to
// check.
func (s *Store) Check(ctx context.Context, o CheckOptions) iter.Seq2[Finding, error] {
	ids, err := chosen("check", o.Contexts, o.All)
	if err != nil {
		return func(yield func(Finding, error) bool) { yield(Finding{}, err) }
	}
	options := checking.Options{ReadData: o.ReadData, Progress: progressOf(o.Progress)}
	return each(checking.Check(ctx, s.e, ids, options), func(f integrity.Finding) Finding {
		return Finding{f.Context, FindingKind(f.Kind), Severity(f.Severity), f.Path, f.ID, f.Detail, f.Repairable}
	})
}

// Repair fixes what a check finds, and returns what it did. The trash keeps a copy of everything that it replaces. A
// message without any copy is marked unavailable and keeps its position. Repair checks without a lock, and locks a
// context to repair it. A second call does nothing. The error includes each context that it could not repair; the others
// are still processed. Repair fails with [ErrInvalid] unless o says what to repair.
func (s *Store) Repair(ctx context.Context, o RepairOptions) ([]Finding, error) {
	ids, err := chosen("repair", o.Contexts, o.All)
	if err != nil {
		return nil, err
	}
	options := checking.Options{DryRun: o.DryRun, Adopt: o.Adopt, Progress: progressOf(o.Progress)}
	return collect(checking.Repair(ctx, s.e, ids, options), o.Report, o.Failed, repaired)
}

func repaired(r integrity.Repaired) Finding {
	return Finding{Context: r.Context, Kind: FindingKind(r.Kind), Path: r.Path, ID: r.ID, Detail: r.Detail}
}

// RepairStore rewrites the store's own file, ctxdir.json, if it is damaged or missing. It takes the id from the
// contexts; the settings are lost. The damaged file moves to the trash. Until then, [Open] fails with [ErrDamaged], and
// only a store that is opened with [Options].ReadOnly shows its contexts. RepairStore returns what it did, or nothing if
// the file is intact. It fails with [ErrFormat] if a newer version of the program made the store.
func RepairStore(dir string, opts ...Options) ([]Finding, error) {
	done, err := engine.RepairStore(dir, engineOptions(opts)...)
	if err != nil || done == "" {
		return nil, err
	}
	return []Finding{{Kind: FindingKind(integrity.KindStore), Path: engine.StoreFile, Detail: done}}, nil
}
