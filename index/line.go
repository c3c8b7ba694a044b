package index

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// line is the state of one line.
type line struct {
	Counts
	Placement
	start   int64               // position of recent[0]; lower positions are folded
	recent  []Entry             // what the journals added
	byID    map[uuid.UUID]int64 // positions of recent; nil until first used
	changed map[int64]*Entry    // rows below start that a journal replaced
	cut     uint64              // the last record that cut the line, 0 for none
	lostIDs map[uuid.UUID]int64 // positions of rows marked lost; nil until first used
}

func newLine(c Counts) *line {
	return &line{Counts: c, start: c.End()}
}

func (ln *line) push(e Entry) {
	ln.recent = append(ln.recent, e)
	if ln.byID != nil {
		ln.byID[e.ID] = e.Position
	}
	ln.add(&e)
}

// find returns the position of a recent message.
func (ln *line) find(id uuid.UUID) (position int64, ok bool) {
	if ln.byID == nil {
		ln.byID = make(map[uuid.UUID]int64, len(ln.recent))
		for i := range ln.recent {
			ln.byID[ln.recent[i].ID] = ln.recent[i].Position
		}
	}
	position, ok = ln.byID[id]
	return position, ok
}

// unfolded returns the entries of a line that have no rows, or have other ones, in order of position.
func (ln *line) unfolded() []Entry {
	entries := slices.Clone(ln.recent)
	for _, e := range ln.changed {
		entries = append(entries, *e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Position, b.Position) })
	return entries
}

// change replaces the entry at a position. was is the size of the previous one. If was is negative, the record repeats
// a known one and does not state the size.
func (ln *line) change(e Entry, was int64) {
	if e.Position < ln.Base {
		return
	}
	if i := e.Position - ln.start; i >= 0 {
		if was < 0 {
			was = ln.recent[i].Size
		}
		if ln.recent[i].ID != e.ID {
			ln.byID = nil
		}
		ln.recent[i] = e
	} else {
		if was < 0 {
			return
		}
		ln.changeRow(e)
	}
	ln.bound(e.ID)
	ln.Bytes = max(ln.Bytes+e.Size-was, 0)
	if e.Payloads > 0 {
		ln.Referring++
	}
	if e.File != uuid.Nil && e.File != e.ID {
		ln.Derived = max(ln.Derived, 1) // a lost message may come back under such a name
	}
	if e.Position == ln.End()-1 {
		ln.Last = e.ID
	}
}

// changeRow notes an entry that replaces a row.
func (ln *line) changeRow(e Entry) {
	if ln.changed == nil {
		ln.changed = map[int64]*Entry{}
	}
	ln.changed[e.Position] = &e
}
