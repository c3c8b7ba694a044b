package index

import (
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// build assembles a line. Unclaimed positions are lost; the next message names their ids. If a record or a row has a
// position below the base in metadata.json, that base is wrong.
func (b *rebuilder) build(of *ctxfolder.Line, claims []claim) {
	at := b.found[of.ID]
	if at == nil {
		at = map[int64]Entry{}
	}
	for p, e := range b.lost[of.ID] {
		if now, found := at[p]; !found || e.Lost == Erased && (now.seq == 0 || now.ID == e.ID) {
			at[p] = b.spareFor(of.ID, e)
		}
	}
	base := of.Base
	for p := range at {
		base = min(base, p)
	}
	ln := &line{Counts: Counts{Line: of.ID, Base: base}, start: base}
	b.s.lines[of.ID] = ln
	for _, p := range b.credible(ln, at) {
		for ln.End() < p-1 {
			ln.push(b.lostEntry(of.ID, ln.End(), uuid.Nil))
		}
		if ln.End() < p {
			ln.push(b.lostEntry(of.ID, ln.End(), b.idBefore(of.Folder, at[p])))
		}
		ln.push(at[p])
	}
	was := b.counts[of.ID]
	for end := b.end(ln, int64(len(at)), claims); ln.End() < end; {
		var last uuid.UUID
		if ln.End() == was.End()-1 {
			last = was.Last
		}
		if e, ok := b.last[of.ID]; ok && ln.End() == e.Position && last == uuid.Nil {
			last = e.ID
		}
		ln.push(b.lostEntry(of.ID, ln.End(), last))
	}
}

// nameLost sets the id of a lost message from the first message of a line that begins right after it.
func (b *rebuilder) nameLost(line uuid.UUID, lost Entry) Entry {
	for i := range b.metadata.Lines {
		fork := &b.metadata.Lines[i]
		if first, ok := b.found[fork.ID][fork.Base]; ok && lost.ID == uuid.Nil && fork.Parent == line && fork.Base == lost.Position+1 {
			lost.ID = b.idBefore(fork.Folder, first)
		}
	}
	// A message that claims another position exists: no line has a message twice.
	if p, filed := b.filed[lineKey{line, lost.ID}]; filed && b.found[line][p].ID == lost.ID {
		lost.ID = uuid.Nil
	}
	return lost
}

// idBefore returns the id of the message before e, as far as e names it.
func (b *rebuilder) idBefore(folder string, e Entry) uuid.UUID {
	id, known := b.prev[e.ID]
	if known {
		return id
	}
	raw := b.s.readPacked(&e)
	if raw == nil {
		var is FileState
		if raw, is, _ = e.ReadFile(b.s.dir, folder); !is.Whole() {
			return uuid.Nil
		}
	}
	if env, err := message.Parse(raw); err == nil {
		id = env.Prev
	}
	return id
}

// spareFor returns the spare message for the position of a lost one, or the lost entry.
func (b *rebuilder) spareFor(line uuid.UUID, lost Entry) Entry {
	if e, ok := b.spare[line][lost.Position]; ok && lost.Lost != Erased && (lost.ID == uuid.Nil || lost.ID == e.ID) {
		return e
	}
	return lost
}

// lostEntry returns the entry of a position without a message. id is the message's, if its neighbours know it.
func (b *rebuilder) lostEntry(line uuid.UUID, position int64, id uuid.UUID) Entry {
	e := b.spareFor(line, Entry{Position: position, ID: id, Lost: "no copy was found"})
	if e.Lost != "" {
		e = b.nameLost(line, e)
	}
	return e
}

// credible returns the plausible positions of a line, in order. A position far beyond the others comes from a damaged
// digit, unless it has a neighbour.
func (b *rebuilder) credible(ln *line, at map[int64]Entry) []int64 {
	positions := make([]int64, 0, len(at))
	known := ln.Base + 2*int64(len(at))
	for p := range at {
		_, before := at[p-1]
		_, behind := at[p+1]
		if p < known+maxUnchecked || p < known+maxChecked && (before || behind) {
			positions = append(positions, p)
		} else {
			b.s.note("message", "position %[2]d of line %[1]s is ignored: it is far beyond the other messages", ln.Line, p)
		}
	}
	slices.Sort(positions)
	return positions
}

// end returns where a line ended, from the number of messages found and the claims.
func (b *rebuilder) end(ln *line, found int64, claims []claim) (end int64) {
	for _, c := range claims {
		switch {
		case c.end <= end:
		case c.end <= ln.Base+2*found+c.limit:
			end = c.end
		default:
			b.s.note("index", "line %s ends at position %d according to %s: ignored, since that is far beyond its messages", ln.Line, c.end, c.by)
		}
	}
	return end
}
