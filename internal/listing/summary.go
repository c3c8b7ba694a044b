package listing

import (
	"context"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/google/uuid"
)

// Summary is one context in a list.
type Summary struct {
	ID           uuid.UUID
	Title        string
	Labels       map[string]string
	Kind         string
	ExternalID   string
	Model        string // config.model_id
	Branches     int
	ActiveBranch string
	Messages     int64 // shown by at least one branch, each counted once
	Bytes        int64 // of all its messages and of metadata.json
	Archived     int64 // of these, those of messages without files
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Commit       string              // the newest commit: see [freshness.CommitOf]; empty if it is not known
	Format       engine.LegacyFormat // of a legacy context; empty otherwise
	Cursor       string              // in a list: where it continues after this row
	Problem      error               // why the context, or a part of it, is unusable; the other fields hold the known values
}

// Summarise returns the row of an open context in a list.
func Summarise(c *engine.Context) Summary {
	at, err := engine.Use(c, c.Index.At) // what follows is at least as new
	m := c.Current()
	sum := Summary{
		ID: m.ID, Title: m.Title, Labels: m.Labels.Texts(), Kind: m.Kind, ExternalID: m.ExternalID, Model: m.Config.Text("model_id"),
		Branches: len(m.Branches), ActiveBranch: m.ActiveBranch,
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Problem: c.Problem(),
	}
	if err == nil {
		sum.Commit = freshness.CommitOf(at)
		_, err = engine.Use(c, func() (any, error) { return nil, addSizes(c, m, &sum) })
	}
	if err != nil {
		sum.Problem = err
	}
	return sum
}

// newestIn returns when the last message of a branch was stored, if that is later than a time. lines are those of the
// branch, its own first.
func newestIn(c *engine.Context, lines []branch.Segment, than time.Time) (time.Time, error) {
	for _, seg := range lines {
		for e, err := range c.Index.All(context.Background(), seg.Line, max(seg.From, seg.To-1), seg.To) {
			if err != nil {
				return than, err
			}
			if at := e.StoredAt(); at.After(than) {
				return at, nil
			}
			return than, nil
		}
	}
	return than, nil
}

// addSizes adds the counts and sizes of the index to a summary.
func addSizes(c *engine.Context, m *engine.Metadata, sum *Summary) error {
	all, newest, err := c.Index.AllCounts()
	if err != nil {
		return err
	}
	hasKinds := slices.ContainsFunc(m.Branches, func(b ctxfolder.Branch) bool { return b.Extra.Text(ctxfolder.BranchKind) != "" })
	shown := map[uuid.UUID]int64{} // for each line, the end of what branches show of it
	var said time.Time             // when the newest message of the conversation was stored
	for _, b := range m.Branches {
		l, ok := m.Line(b.Line)
		if !ok {
			continue
		}
		lines, err := branch.Lines(m, l.ID, max(all[l.ID].End(), l.Base))
		if err == nil && hasKinds && b.Extra.Text(ctxfolder.BranchKind) == "" {
			said, err = newestIn(c, lines, said)
		}
		if err != nil {
			sum.Problem = err
		}
		for _, seg := range lines {
			shown[seg.Line] = max(shown[seg.Line], seg.To)
		}
	}
	for _, l := range m.Lines {
		sum.Messages += max(shown[l.ID]-l.Base, 0)
		sum.Bytes += all[l.ID].Bytes
		sum.Archived += min(l.ArchivedBytes, all[l.ID].Bytes)
	}
	if b, err := m.Encode(); err == nil {
		sum.Bytes += int64(len(b))
	}
	if hasKinds {
		newest = said
	}
	if newest.After(sum.UpdatedAt) {
		sum.UpdatedAt = newest
	}
	useOriginTimes(m, newest, sum)
	return nil
}

// useOriginTimes gives the row of an imported context the times of its messages in place of those of the import.
// newest is the time at which the newest message was stored: one that came after the import counts.
func useOriginTimes(m *engine.Metadata, newest time.Time, sum *Summary) {
	from := origin.TimesOf(m)
	if !from.Created.IsZero() {
		sum.CreatedAt = from.Created
	}
	switch {
	case from.Updated.IsZero() || from.Imported.IsZero():
	case newest.After(from.Imported):
		sum.UpdatedAt = newest
	default:
		sum.UpdatedAt = from.Updated
	}
}
