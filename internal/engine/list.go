package engine

import (
	"context"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Summary is one context in a list.
type Summary struct {
	ID           uuid.UUID
	Title        string
	Branches     int
	ActiveBranch string
	Messages     int64 // shown by at least one branch, each counted once
	Bytes        int64 // of all its messages and of metadata.json
	Archived     int64 // of these, those that are read from packs
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Format       LegacyFormat // of a legacy context; empty otherwise
	Problem      error        // why the context, or a part of it, is unusable; the other fields hold the known values
}

// List yields every context in the store, in no particular order. It includes legacy contexts, and does not migrate
// them. A damaged context is a row with its problem and does not end the list. An error is that of reading the store's
// own folder. The store keeps what earlier lists read in summaries.jsonl, a cache.
func (s *Store) List(ctx context.Context) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		known := s.readSummaries()
		for e, err := range s.entries() {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Summary{}, err)
				return
			}
			sum, ok := s.entrySummary(ctx, known, e)
			if ok && !yield(sum, nil) {
				return
			}
		}
		s.writeSummaries(known)
	}
}

// entrySummary returns the row of an entry. ok is false if the entry is not to be listed.
func (s *Store) entrySummary(ctx context.Context, known *summaries, e entry) (sum Summary, ok bool) {
	name := e.id.String()
	if e.folder {
		if sum, ok := s.cachedSummary(known, e.id); ok {
			return sum, true
		}
	} else {
		name += ".json"
	}
	if !e.folder || IsSplit(s.FS, name) {
		if sum, ok = s.legacySummary(known, e.id, name); ok && sum.Problem == nil || s.Legacy(e.id) != "" {
			return sum, ok
		}
		if _, err := s.FS.Lstat(e.id.String()); err != nil && !ctxfolder.Ready(s.FS, e.id) {
			return sum, ok
		}
		// It was migrated meanwhile.
	}
	return s.summary(ctx, known, e.id), true
}

func (s *Store) summary(ctx context.Context, known *summaries, id uuid.UUID) Summary {
	c, err := s.Open(ctx, id)
	if err != nil {
		return Summary{ID: id, Problem: Wrap(Error{Op: "open", Context: id}, err)}
	}
	defer c.Close()
	journal, err := c.Log.NewestJournal()
	if err != nil || journal == 0 {
		return c.Summary()
	}
	before, ok := s.fileStates(id, journal)
	// Everything read from here on is at least as new as the files examined.
	if err := c.Refresh(ctx); err != nil {
		return Summary{ID: id, Problem: err}
	}
	sum := c.Summary()
	if ok {
		s.cacheSummary(known, before, journal, sum)
	}
	return sum
}

// Summary returns the row of the context in a list.
func (c *Context) Summary() Summary {
	m := c.Current()
	sum := Summary{
		ID: m.ID, Title: m.Title, Branches: len(m.Branches), ActiveBranch: m.ActiveBranch,
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Problem: c.Problem(),
	}
	if err := c.use(func() error { return c.sizes(m, &sum) }); err != nil {
		sum.Problem = err
	}
	return sum
}

// sizes adds the counts and sizes of the index to a summary.
func (c *Context) sizes(m *Metadata, sum *Summary) error {
	all, newest, err := c.Log.AllCounts()
	if err != nil {
		return err
	}
	shown := map[uuid.UUID]int64{} // for each line, the end of what branches show of it
	for _, b := range m.Branches {
		l, ok := m.Line(b.Line)
		if !ok {
			continue
		}
		lines, err := branch.Lines(m, l.ID, max(all[l.ID].End(), l.Base))
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
		archived, err := c.Log.Archived(l.ID)
		if err != nil {
			sum.Problem = err
		}
		sum.Archived += archived
	}
	if b, err := m.Encode(); err == nil {
		sum.Bytes += int64(len(b))
	}
	if at := time.Unix(0, newest).UTC(); newest > 0 && at.After(sum.UpdatedAt) {
		sum.UpdatedAt = at
	}
	return nil
}
