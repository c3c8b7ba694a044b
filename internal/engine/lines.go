package engine

import (
	"fmt"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Place is the result of a search for a message.
type Place struct {
	Span  loader.Span
	Entry index.Entry
}

// Find looks up an id in the history of a line.
func (c *Context) Find(m *Metadata, line, id uuid.UUID) (Place, error) {
	end, err := c.End(m, line)
	if err != nil {
		return Place{}, err
	}
	lines, err := branch.Lines(m, line, end)
	if err != nil {
		return Place{}, err
	}
	for _, seg := range lines {
		e, ok, err := c.Index.Find(seg.Line, id, seg.To)
		if err != nil {
			return Place{}, err
		}
		if ok {
			l, _ := m.Line(seg.Line)
			return Place{loader.Span{Line: seg.Line, Folder: l.Folder, From: seg.From, To: seg.To}, e}, nil
		}
	}
	return Place{}, fmt.Errorf("%w: message %s", ErrNotExist, id)
}

// End returns the end of a line: the position that the next message of it gets. Trash and erase compare lines with it.
func (c *Context) End(m *Metadata, line uuid.UUID) (int64, error) {
	l, ok := m.Line(line)
	if !ok {
		return 0, fmt.Errorf("%w: line %s not found", ErrMetadata, line)
	}
	counts, _, err := c.Index.Counts(l.ID)
	return max(counts.End(), l.Base), err
}

// IDBefore returns the id of the message before a position of a line's history.
func (c *Context) IDBefore(m *Metadata, line uuid.UUID, position int64) (uuid.UUID, error) {
	if position == 0 {
		return uuid.Nil, nil
	}
	if counts, ok, err := c.Index.Counts(line); err != nil || ok && counts.Count > 0 && counts.End() == position {
		return counts.Last, err
	}
	segments, err := branch.Segments(m, line, position-1, position)
	if err != nil {
		return uuid.Nil, err
	}
	entries, err := c.Index.Entries(segments[0].Line, position-1, position)
	if err != nil || len(entries) == 0 {
		return uuid.Nil, err
	}
	return entries[0].ID, nil
}

// BranchOfLine returns the branch whose own line this is, nil if the line has no name.
func BranchOfLine(m *Metadata, line uuid.UUID) *ctxfolder.Branch {
	for i := range m.Branches {
		if m.Branches[i].Line == line {
			return &m.Branches[i]
		}
	}
	return nil
}
