package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// planArchive selects the messages to archive and the packs to merge with them. stayed counts the unavailable messages
// among those to archive.
func (c *Context) planArchive(ctx context.Context, o ArchiveOptions) (plan index.Plan, stayed int64, err error) {
	chosen, err := c.chooseMessages(ctx, o)
	if err != nil {
		return plan, chosen.stayed, err
	}
	plan.Pack = chosen.messages
	uses, err := c.Log.PackUses(ctx)
	if err != nil {
		return plan, chosen.stayed, err
	}
	whole := o.OlderThan == 0 && o.StoredFor == 0 && o.KeepLast == 0 && o.Branch == ""
	if chosen.bytes == 0 && (!whole || len(uses) < 2) {
		return plan, chosen.stayed, nil
	}
	// The smallest first, so that many small packs become one, and each message is rewritten only a few times. A pack of
	// up to twice the size merges, too: packs of as many messages differ by some bytes.
	slices.SortFunc(uses, func(a, b index.PackUse) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for _, use := range uses {
		if limited := o.limit > 0 && chosen.bytes+use.Bytes > 2*o.limit; use.Named && !limited && (whole || use.Bytes <= 2*chosen.bytes) {
			AddSpans(plan.Pack, use.Live)
			chosen.bytes += use.Bytes
		}
	}
	return plan, chosen.stayed, nil
}

// choice is what [Context.chooseMessages] found.
type choice struct {
	messages map[uuid.UUID]index.Spans
	bytes    int64 // length of their envelopes
	stayed   int64 // unavailable messages
}

// chooseMessages selects the messages to archive that are not in a pack yet.
func (c *Context) chooseMessages(ctx context.Context, o ArchiveOptions) (choice, error) {
	chosen := choice{messages: map[uuid.UUID]index.Spans{}}
	spans, err := c.archivable(o.Branch)
	if err != nil {
		return chosen, err
	}
	kept, err := c.newest(o.KeepLast)
	if err != nil {
		return chosen, err
	}
	now := c.Store.Now()
	before, storedBefore := now.Add(-o.OlderThan), now.Add(-o.StoredFor).UnixNano()
	for _, span := range spans {
		var positions index.Spans
		for e, err := range c.Log.All(ctx, span.Line, span.From, span.To) {
			switch {
			case err != nil:
				return chosen, err
			case e.Pack != uuid.Nil, e.Lost != "", kept[span.Line].Has(e.Position), o.StoredFor > 0 && e.At > storedBefore:
				continue
			case o.limit > 0 && chosen.bytes >= o.limit:
				continue
			}
			if o.OlderThan > 0 {
				m, err := c.Loader.Load(ctx, span, e)
				if err != nil {
					return chosen, err
				}
				if m.Unavailable != nil {
					chosen.stayed++
					continue
				}
				if !timeOf(m).Before(before) {
					continue
				}
			}
			positions.Add(e.Position)
			chosen.bytes += e.Size
		}
		if len(positions) > 0 {
			chosen.messages[span.Line] = chosen.messages[span.Line].With(positions)
		}
	}
	return chosen, nil
}

// newest returns the positions of the newest n messages that each branch shows, by line.
func (c *Context) newest(n int64) (map[uuid.UUID]index.Spans, error) {
	kept := map[uuid.UUID]index.Spans{}
	if n <= 0 {
		return kept, nil
	}
	m := c.Current()
	for i := range m.Branches {
		end, err := c.End(m, m.Branches[i].Line)
		if err != nil {
			return nil, err
		}
		parts, err := branch.Segments(m, m.Branches[i].Line, max(end-n, 0), end)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			kept[part.Line] = kept[part.Line].With(index.Spans{{From: part.From, To: part.To}})
		}
	}
	return kept, nil
}

// timeOf returns the time of a message, or else that of its commit.
func timeOf(m *Message) time.Time {
	if m.CreatedAt.IsZero() {
		return m.StoredAt
	}
	return m.CreatedAt
}

// archivable returns the positions that a branch shows, or without a name those of all lines.
func (c *Context) archivable(name string) (spans []loader.Span, err error) {
	m := c.Current()
	if name != "" {
		info, err := branch.Get(m, name)
		if err != nil {
			return nil, err
		}
		end, err := c.End(m, info.Line)
		if err != nil {
			return nil, err
		}
		lines, err := branch.Lines(m, info.Line, end)
		for _, seg := range lines {
			l, _ := m.Line(seg.Line)
			spans = append(spans, loader.Span{Line: seg.Line, Folder: l.Folder, From: seg.From, To: seg.To})
		}
		return spans, err
	}
	for i := range m.Lines {
		l := &m.Lines[i]
		counts, _, err := c.Log.Counts(l.ID)
		if err != nil {
			return nil, err
		}
		spans = append(spans, loader.Span{Line: l.ID, Folder: l.Folder, From: counts.Base, To: counts.End()})
	}
	return spans, nil
}

// ArchiveOld archives what the settings of the store say, for a collection, which holds [CollectionLock]. It archives
// at most limit bytes of messages, 0 for all. Payloads stay blobs: other contexts may share them. With dryRun it only
// counts.
func (c *Context) ArchiveOld(ctx context.Context, o ArchiveOptions, limit int64, dryRun bool) (ArchiveResult, error) {
	o.limit = limit
	done, err := Use(c, func() (ArchiveResult, error) { return c.archiveOld(ctx, o, dryRun) })
	done.Context = c.Dir.ID
	return done, Wrap(Error{Op: "archive", Context: c.Dir.ID}, err)
}

func (c *Context) archiveOld(ctx context.Context, o ArchiveOptions, dryRun bool) (done ArchiveResult, err error) {
	chosen, err := c.chooseMessages(ctx, o)
	if dryRun {
		done.Before, done.Stayed = chosen.bytes, chosen.stayed
		for _, positions := range chosen.messages {
			done.Messages += positions.Len()
		}
	} else if err == nil && len(chosen.messages) > 0 {
		done, err = c.arrangeLocked(ctx, func() (index.Plan, int64, error) { return c.planArchive(ctx, o) })
	}
	return done, err
}
