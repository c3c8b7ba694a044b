package archiving

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Options selects the messages to archive. The zero value selects all.
type Options struct {
	// OlderThan leaves out younger messages, and all that follow one on its line. A message without a time has that of its
	// commit.
	OlderThan time.Duration
	// StoredFor leaves out messages that were committed, or replaced, more recently, and all that follow one on its line. It
	// reads no message.
	StoredFor time.Duration
	// KeepLast leaves out the newest messages of each branch, this many.
	KeepLast int64
	// Branch leaves out messages that this branch does not show.
	Branch string
	// DryRun only counts the messages and their bytes.
	DryRun bool
	// limit bounds the length of the envelopes to archive in one call, in bytes; 0 for no bound.
	limit int64
	// Progress receives the number of messages examined so far; nil for no reports.
	Progress func(done, all int64)
}

// chosenLine is what to archive of a line.
type chosenLine struct {
	folder   string
	base, to int64 // from its first own message on, no message has a file before to
	messages int64 // of these, those that are not archived yet
	bytes    int64 // the length of their envelopes
}

// choose selects what to archive of each line: messages up to a position.
func choose(ctx context.Context, c *engine.Context, o Options) (map[uuid.UUID]*chosenLine, error) {
	m := c.Current()
	spans, err := archivable(c, m, o.Branch)
	if err != nil {
		return nil, err
	}
	kept, err := newest(c, m, o.KeepLast)
	if err != nil {
		return nil, err
	}
	now := c.Store.Now()
	before, storedBefore := now.Add(-o.OlderThan), now.Add(-o.StoredFor).UnixMicro()
	chosen := map[uuid.UUID]*chosenLine{}
	var bytes int64
	for _, span := range spans {
		l, ok := m.Line(span.Line)
		if !ok {
			continue
		}
		x := &chosenLine{folder: span.Folder, base: span.From, to: max(l.Archived, span.From)}
		if end, ok := kept[span.Line]; ok {
			span.To = min(span.To, end)
		}
		for e, err := range c.Index.All(ctx, span.Line, x.to, span.To) {
			if err != nil {
				return nil, err
			}
			if o.StoredFor > 0 && e.At > storedBefore || o.limit > 0 && bytes >= o.limit {
				break
			}
			if o.OlderThan > 0 {
				msg, err := c.Loader.Load(ctx, span, e)
				if err != nil {
					return nil, err
				}
				if msg.Unavailable == nil && !engine.TimeOf(msg).Before(before) {
					break
				}
			}
			if x.to = e.Position + 1; e.Gone == archive.Here {
				x.messages, x.bytes, bytes = x.messages+1, x.bytes+e.Size, bytes+e.Size
			}
		}
		if x.to > x.base {
			chosen[span.Line] = x
		}
	}
	return chosen, nil
}

// newest returns, for each line, the first position of the newest n messages that a branch shows.
func newest(c *engine.Context, m *engine.Metadata, n int64) (map[uuid.UUID]int64, error) {
	kept := map[uuid.UUID]int64{}
	for i := 0; i < len(m.Branches) && n > 0; i++ {
		end, err := c.End(m, m.Branches[i].Line)
		if err != nil {
			return nil, err
		}
		parts, err := branch.Segments(m, m.Branches[i].Line, max(end-n, 0), end)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if first, ok := kept[part.Line]; !ok || part.From < first {
				kept[part.Line] = part.From
			}
		}
	}
	return kept, nil
}

// archivable returns the positions that a branch shows, or without a name those of all lines.
func archivable(c *engine.Context, m *engine.Metadata, name string) (spans []loader.Span, err error) {
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
		counts, ok, err := c.Index.Counts(l.ID)
		if err != nil {
			return nil, err
		}
		if ok {
			spans = append(spans, loader.Span{Line: l.ID, Folder: l.Folder, From: counts.Base, To: counts.End()})
		}
	}
	return spans, nil
}
