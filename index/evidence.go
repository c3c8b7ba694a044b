package index

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// A position that was committed stays a position when its message is lost: another message in its place would appear in branches that
// never had it. A rebuild therefore looks for everything that proves how long a line was.

// evidence is what a rebuild knows beside the messages that it found.
type evidence struct {
	counts map[uuid.UUID]Counts          // of index.json and the beginnings of journals
	ends   map[uuid.UUID]int64           // how long lines were at least, by their rows
	below  map[uuid.UUID]bool            // lines with a message below the base that metadata.json tells
	scraps map[uint64]scrap              // of the journals that cannot be opened
	spots  map[uint64]uint64             // chains of records whose place in the history is known, by number
	spare  map[uuid.UUID]map[int64]Entry // messages in journals and packs whose place in the history is not known
}

const (
	// strayed bounds how many positions beyond those found one claim explains that has no sum: a damaged digit claims more.
	strayed = 1 << 12
	// claimed is that bound for a claim that has a sum, or that another one confirms. Each position takes a row.
	claimed = 1 << 16
)

// readScraps reads the journals that cannot be opened.
func (b *rebuilder) readScraps() {
	b.evidence = evidence{
		counts: map[uuid.UUID]Counts{}, ends: map[uuid.UUID]int64{}, below: map[uuid.UUID]bool{},
		scraps: map[uint64]scrap{}, spots: map[uint64]uint64{}, spare: map[uuid.UUID]map[int64]Entry{},
	}
	for _, gen := range b.s.scraps.gens {
		if i := slices.IndexFunc(b.s.journals, func(j *journal) bool { return j.gen == gen }); i >= 0 {
			b.newer(b.s.journals[i].begin.Metadata)
			continue
		}
		s, _ := readScrap(b.s.dir, gen)
		if slices.Contains(b.s.foreign, gen) { // its messages are others; a payload proves itself
			s.begin = nil
			s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.kind != KindPayload })
		}
		if b.scraps[gen] = s; s.begin != nil {
			b.copied(s.begin.Metadata)
		}
		for i := range s.changes {
			b.copied(s.changes[i].metadata)
		}
	}
}

// newer takes a copy of metadata.json that is newer than the ones before, if it is one.
func (b *rebuilder) newer(raw json.RawMessage) {
	if raw != nil {
		b.s.metadata = raw
	}
}

// copied is newer for a copy that may be of another context.
func (b *rebuilder) copied(raw json.RawMessage) {
	if m, err := ctxfolder.ParseMetadata(raw); err == nil && m.ID == b.s.dir.ID {
		b.newer(raw)
	}
}

// expect takes the newest counts that there are.
func (b *rebuilder) expect(x *folded) {
	var newest uint64
	take := func(seq uint64, lines []Counts) {
		if seq < newest {
			return
		}
		newest = seq
		for _, c := range lines {
			b.counts[c.Line] = c
		}
	}
	if x != nil && x.Context != uuid.Nil {
		b.spots[x.Seq] = x.chain
		for _, ln := range x.Lines {
			take(x.Seq, []Counts{ln.Counts})
		}
	}
	for _, gen := range b.s.scraps.gens {
		if s := b.scraps[gen]; s.begin != nil {
			take(s.begin.Seq, s.begin.Lines)
		}
		for _, j := range b.s.journals {
			if j.gen == gen {
				take(j.begin.Seq, j.begin.Lines)
			}
		}
	}
}

// takeScrap takes the whole records of a journal that cannot be opened. Where its place in the history is not known, its messages only
// fill gaps.
func (b *rebuilder) takeScrap(gen uint64) {
	s := b.scraps[gen]
	known := b.continues(s.changes)
	if s.begin != nil {
		b.copied(s.begin.Metadata)
	}
	for i := range s.changes {
		c := &s.changes[i]
		if known {
			b.spots[c.seq] = c.chain
		}
		if c.metadata != nil {
			b.copied(c.metadata)
			c.metadata = nil
		}
		if known || c.kind != KindAppend && c.kind != KindReplace {
			b.take(c, gen)
			continue
		}
		b.fill(c.address.Line, c.entry(gen))
	}
}

// fill takes a message that counts only where something else proves that there was one.
func (b *rebuilder) fill(line uuid.UUID, e Entry) {
	if b.spare[line] == nil {
		b.spare[line] = map[int64]Entry{}
	}
	b.spare[line][e.Position] = e
}

// continues reports whether records belong to the context's history: they meet a record that does, or there is none that could contradict them.
func (b *rebuilder) continues(changes []change) bool {
	if len(b.spots) == 0 {
		return true
	}
	for i := range changes {
		c := &changes[i]
		if chain, known := b.spots[c.seq-1]; known && chain == c.prev {
			return true
		}
		if chain, known := b.spots[c.seq]; known {
			return chain == c.chain
		}
	}
	return false
}

// prove notes that a line was so long at least.
func (b *rebuilder) prove(line uuid.UUID, end int64) { b.ends[line] = max(b.ends[line], end) }

// credible returns the positions of a line that are likely, in order. One far beyond the others comes from a damaged digit, unless it has a neighbour.
func (b *rebuilder) credible(ln *line, at map[int64]Entry) []int64 {
	positions := make([]int64, 0, len(at))
	known := ln.Base + 2*int64(len(at))
	for p := range at {
		_, before := at[p-1]
		_, behind := at[p+1]
		if p < known+strayed || p < known+claimed && (before || behind) {
			positions = append(positions, p)
		} else {
			b.s.note("message", "line %s: position %d makes no sense", ln.Line, p)
		}
	}
	slices.Sort(positions)
	return positions
}

// claim says how long a line was. It counts up to so many positions beyond those that were found.
type claim struct {
	end, most int64
	by        string
}

// claims returns what says how long lines were, beside their messages.
func (b *rebuilder) claims() map[uuid.UUID][]claim {
	all := map[uuid.UUID][]claim{}
	for i := range b.metadata.Lines {
		id := b.metadata.Lines[i].ID
		all[id] = append(all[id], claim{b.counts[id].End(), claimed, "the index"}, claim{b.ends[id], claimed, "its rows"})
	}
	for fork := range b.s.forks(b.metadata) {
		most := int64(strayed)
		if len(b.found[fork.ID]) > 0 {
			most = claimed
		}
		if !b.below[fork.ID] && !b.elsewhere(fork) {
			all[fork.Parent] = append(all[fork.Parent], claim{fork.Base, most, "line " + fork.ID.String()})
		}
	}
	for t, err := range ctxfolder.EachTrash(b.s.dir.FS, func(_ uuid.UUID, folder bool) bool { return folder }) {
		// A line at which no branch points may have been cut since.
		if err == nil && t.Problem == nil && t.Item.Kind == ctxfolder.TrashLine && b.reach[t.Item.Parent] == branch.Whole {
			all[t.Item.Parent] = append(all[t.Item.Parent], claim{t.Item.Base, strayed, t.Path})
		}
	}
	return all
}

// elsewhere reports whether the message before a line's first one is on another line than the one that metadata.json tells.
func (b *rebuilder) elsewhere(fork *ctxfolder.Line) bool {
	first, ok := b.found[fork.ID][fork.Base]
	if !ok {
		return false
	}
	before := b.before(fork.Folder, first)
	return before != uuid.Nil && slices.ContainsFunc(b.metadata.Lines, func(l ctxfolder.Line) bool {
		return l.ID != fork.Parent && b.found[l.ID][fork.Base-1].ID == before
	})
}

// end returns how long a line was of which so many messages were found.
func (b *rebuilder) end(ln *line, found int64, claims []claim) (end int64) {
	for _, c := range claims {
		switch {
		case c.end <= end:
		case c.end <= ln.Base+2*found+c.most:
			end = c.end
		default:
			b.s.note("index", "line %s ends at position %d by %s, which makes no sense", ln.Line, c.end, c.by)
		}
	}
	return end
}

// spared returns the entry of a spare message in the place of one that is lost, or that one.
func (b *rebuilder) spared(line uuid.UUID, lost Entry) Entry {
	if e, ok := b.spare[line][lost.Position]; ok && lost.Lost != Erased && (lost.ID == uuid.Nil || lost.ID == e.ID) {
		return e
	}
	return lost
}

// missing is the entry of a position of which no message was found. id is the message's, as far as its neighbours tell.
func (b *rebuilder) missing(line uuid.UUID, position int64, id uuid.UUID) Entry {
	e := b.spared(line, Entry{Position: position, ID: id, Lost: "no copy of it was found"})
	if e.Lost != "" {
		e = b.named(line, e)
	}
	return e
}

// forks is [branch.Forks] without the lines for which the newest copy of metadata.json in the journals has another base or parent: that has a sum.
func (s *state) forks(m *ctxfolder.Metadata) iter.Seq[*ctxfolder.Line] {
	return func(yield func(*ctxfolder.Line) bool) {
		copied, err := ctxfolder.ParseMetadata(s.metadata)
		if err != nil {
			copied = m
		}
		for fork := range branch.Forks(m) {
			if l, ok := copied.Line(fork.ID); (!ok || l.Base == fork.Base && l.Parent == fork.Parent) && !yield(fork) {
				return
			}
		}
	}
}

// short returns an error when a line is shorter than a line that begins on it proves.
func (s *state) short(m *ctxfolder.Metadata) error {
	for fork := range s.forks(m) {
		of, ok := s.lines[fork.Parent]
		if !ok {
			of = newLine(Counts{Line: fork.Parent})
		}
		own, ok := s.lines[fork.ID]
		if told := !ok || own.Count == 0 || own.Base == fork.Base; told && fork.Base > of.End() && fork.Base <= of.Base+2*of.Count+strayed {
			return fmt.Errorf("%w: line %s ends at position %d, and line %s goes on from %d", ErrDamaged, fork.Parent, of.End(), fork.ID, fork.Base)
		}
	}
	return nil
}

// Complete makes sure that every line is as long as the lines that begin on it prove: what is missing is lost, and keeps its position. It looks at
// metadata.json first, since what that says was committed before. Where a rebuild does not believe that, it is not done again for the same metadata.json.
func (l *Log) Complete() error {
	if err := l.load(); err != nil {
		return err
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	for range 4 {
		before := l.dir.MetadataStamp()
		m, err := l.dir.UsableMetadata(l.state.metadata)
		if err != nil || l.state.unsaved || before.Same(l.disbelieved) || l.state.short(m) == nil {
			return nil //nolint:nilerr // without metadata.json nothing proves it
		}
		if err := l.catchUp(); err != nil {
			return err
		}
		if err := l.state.short(m); err != nil && !l.state.unsaved && l.dir.MetadataStamp().Same(before) {
			err = l.distrustRows(err)
			if err == nil && l.state.short(m) != nil {
				l.disbelieved = before
			}
			return err
		}
	}
	return nil
}
