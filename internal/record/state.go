package record

import (
	"cmp"
	"time"

	"github.com/ctxdir/ctxdir"
)

// TrashItem is what moved to the trash, or was purged from it.
type TrashItem struct {
	Record  string `json:"record,omitempty"`
	Context string `json:"context,omitempty"`
	Path    string `json:"path"` // in the store
	Bytes   int64  `json:"bytes"`
	Reason  string `json:"reason"`
	Item    string `json:"item,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

// OfTrashItem describes an item without its time.
func OfTrashItem(x ctxdir.TrashItem) TrashItem {
	return TrashItem{"", ID(x.Context), x.Path, x.Bytes, x.Reason, ID(x.ID), string(x.Kind)}
}

// Trashed is an item in the trash.
type Trashed struct {
	TrashItem
	Name string `json:"name,omitempty"`
	*RemovedLine
	RemovedAt time.Time `json:"removed_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Problem   string    `json:"problem,omitempty"`
}

// RemovedLine describes a line in the trash.
type RemovedLine struct {
	Why    string `json:"why"`              // the branch was "rewound" or "removed", or the line is "unnamed"
	First  int64  `json:"first"`            // the position of the first message that no branch shows
	End    int64  `json:"end"`              // the position after the last one
	From   string `json:"from,omitempty"`   // the branch that shares the most messages with the line
	Shared int64  `json:"shared,omitempty"` // number of these
}

// week is how long items stay in the trash by default.
const week = 7 * 24 * time.Hour

// Grace is how long items stay in the trash of a store.
func Grace(s *ctxdir.Store) (time.Duration, error) {
	settings, err := s.Settings()
	return cmp.Or(settings.TrashGrace, week), err
}

// OfTrashed describes an item that expires after a grace period.
func OfTrashed(x ctxdir.TrashItem, grace time.Duration) Trashed {
	expires := x.RemovedAt.Add(grace).UTC()
	if expires.Year() > 9999 { // JSON cannot hold such a time
		expires = x.RemovedAt.UTC()
	}
	t := Trashed{OfTrashItem(x), x.Name, nil, x.RemovedAt.UTC(), expires, Problem(x.Problem)}
	if x.Kind == ctxdir.TrashLine {
		t.RemovedLine = &RemovedLine{x.Why, x.First, x.End, x.From, x.Shared}
	}
	return t
}

// Restored is an item that came back from the trash.
type Restored struct {
	Record   string `json:"record,omitempty"`
	Item     string `json:"item"`
	Kind     string `json:"kind"`
	Context  string `json:"context,omitempty"`
	Path     string `json:"path"`
	Branch   string `json:"branch,omitempty"`
	Messages int64  `json:"messages,omitempty"`
	Bytes    int64  `json:"bytes"`
}

// OfRestored describes an item that came back from the trash.
func OfRestored(x ctxdir.TrashItem) Restored {
	r := Restored{Item: ID(x.ID), Kind: string(x.Kind), Context: ID(x.Context), Path: x.Path, Bytes: x.Bytes}
	if x.Kind == ctxdir.TrashLine {
		r.Branch, r.Messages = x.Name, x.End-x.First
	}
	return r
}

// Finding is a problem that a check found.
type Finding struct {
	Record     string `json:"record,omitempty"`
	Context    string `json:"context,omitempty"`
	Kind       string `json:"kind"`
	Severity   string `json:"severity"`
	Path       string `json:"path,omitempty"` // in the store
	ID         string `json:"id,omitempty"`
	Detail     string `json:"detail"`
	Repairable bool   `json:"repairable"`
}

// OfFinding describes a finding.
func OfFinding(f ctxdir.Finding) Finding {
	return Finding{"", ID(f.Context), string(f.Kind), string(f.Severity), f.Path, ID(f.ID), f.Detail, f.Repairable}
}
