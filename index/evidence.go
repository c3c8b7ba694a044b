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

// A committed position stays a position when its message is lost. Another message in its place would appear in branches
// that never had it. A rebuild therefore collects everything that proves how long a line was.

// evidence holds what a rebuild knows besides the messages that it found.
type evidence struct {
	counts map[uuid.UUID]Counts          // from index.json and the begin records of journals
	ends   map[uuid.UUID]int64           // the least length of lines, by their rows and lost records
	last   map[uuid.UUID]Entry           // position and id of the newest message in a lost record; no checksum confirms them
	below  map[uuid.UUID]bool            // lines with a message below the base in metadata.json
	spots  map[uint64]uint64             // chains of records with a known place in the history, by number
	spare  map[uuid.UUID]map[int64]Entry // messages in journals and packs without a known place in the history
}

const (
	// maxUnchecked bounds the positions that a claim without a checksum can add to those found: a damaged digit adds more.
	maxUnchecked = 1 << 12
	// maxChecked is that bound for a claim with a checksum or a second claim that confirms it. Each position takes a row.
	maxChecked = 1 << 16
)

// journalSource is a journal as a rebuild reads it.
type journalSource struct {
	gen  uint64
	open *journal // nil for a journal that cannot be opened or is of another history

	wholeRecords
}

// readSources finds out how to read each journal, and salvages those that cannot be opened.
func (b *rebuilder) readSources() {
	b.evidence = evidence{
		counts: map[uuid.UUID]Counts{}, ends: map[uuid.UUID]int64{}, below: map[uuid.UUID]bool{},
		last: map[uuid.UUID]Entry{}, spots: map[uint64]uint64{}, spare: map[uuid.UUID]map[int64]Entry{},
	}
	for _, gen := range b.s.all.gens {
		src := journalSource{gen: gen}
		if i := slices.IndexFunc(b.s.journals, func(j *journal) bool { return j.gen == gen }); i >= 0 {
			src.open, src.begin = b.s.journals[i], &b.s.journals[i].begin
			b.takeMetadata(KindMetadata, src.begin.Metadata)
			src.changes = b.read(src.open)
			b.takeAll(src.changes)
			b.sources = append(b.sources, src)
			continue
		}
		src.wholeRecords, _ = salvage(b.s.dir, gen, 0)
		if slices.Contains(b.s.foreign, gen) { // its messages do not count; the name of a payload proves it
			src.begin = nil
			src.changes = slices.DeleteFunc(src.changes, func(c change) bool { return c.kind != KindPayload })
		}
		if src.begin != nil {
			b.takeMetadata(KindMetadata, src.begin.Metadata)
		}
		b.takeAll(src.changes)
		b.sources = append(b.sources, src)
	}
}

// read reads the records of an open journal that count.
func (b *rebuilder) read(j *journal) []change {
	durable := b.durable(j)
	n, err := j.read(maxSeq, durable)
	if err != nil { // records read until then count
		b.s.note("journal", "%s: %v", ctxfolder.JournalFile(j.gen), err)
	}
	if len(n.unfinished) > 0 && durable(n.changes, n.unfinished[0].seq) {
		return append(n.changes, n.unfinished...)
	}
	return n.changes
}

func (b *rebuilder) takeAll(changes []change) {
	for i := range changes {
		b.takeMetadata(changes[i].kind, changes[i].metadata)
	}
}

// takeMetadata takes the metadata of a record, unless raw is nil, it is older than what was taken before, or of another
// context. A copy that its record committed counts rather than one of the format before. A change of metadata that is
// not known yet waits for it.
func (b *rebuilder) takeMetadata(kind Kind, raw json.RawMessage) {
	if raw == nil {
		return
	}
	was := b.s.meta
	m, err := metadataAfter(was, kind, raw)
	switch {
	case kind == KindChange && err != nil:
		b.waiting = append(b.waiting, raw)
		return
	case err != nil || m.ID != b.s.dir.ID:
		return
	case was != nil && (!was.IsBefore() && m.IsBefore() || was.IsBefore() == m.IsBefore() && m.Revision < was.Revision):
		return
	}
	b.s.setMetadata(m, takenMetadata{kind: kind, raw: raw})
}

// applyWaiting applies the changes of the metadata that became known since they were read.
func (b *rebuilder) applyWaiting() {
	waiting := b.waiting
	b.waiting = nil
	for _, raw := range waiting {
		b.takeMetadata(KindChange, raw)
	}
}

// expect takes the newest counts from index.json and the begin records of journals.
func (b *rebuilder) expect(x *indexFile) {
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
	for _, src := range b.sources {
		if src.begin != nil {
			take(src.begin.Seq, src.begin.Lines)
		}
	}
}

// takeSalvaged takes the whole records of a journal that cannot be opened. If its place in the history is unknown, its
// messages only fill gaps.
func (b *rebuilder) takeSalvaged(s *journalSource) {
	known := b.continues(s.changes)
	for i := range s.changes {
		c := &s.changes[i]
		if known {
			b.spots[c.seq] = c.chain
		}
		c.metadata = nil // readSources took it
		if known || c.kind != KindAppend && c.kind != KindReplace {
			b.take(c, s.gen)
			continue
		}
		b.addSpare(c.address.Line, c.entry(s.gen))
	}
}

// addSpare takes a message that counts only where other evidence proves that there was one.
func (b *rebuilder) addSpare(line uuid.UUID, e Entry) {
	if b.spare[line] == nil {
		b.spare[line] = map[int64]Entry{}
	}
	b.spare[line][e.Position] = e
}

// continues reports whether records belong to the context's history: they meet a record that does, or no known record
// can contradict them.
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

// noteEnd notes the least length of a line.
func (b *rebuilder) noteEnd(line uuid.UUID, end int64) { b.ends[line] = max(b.ends[line], end) }

// claim says where a line ended. It counts only up to limit positions beyond those that were found.
type claim struct {
	end, limit int64
	by         string
}

// claims returns the evidence for the ends of lines, besides their messages.
func (b *rebuilder) claims() map[uuid.UUID][]claim {
	all := map[uuid.UUID][]claim{}
	for i := range b.metadata.Lines {
		id := b.metadata.Lines[i].ID
		all[id] = append(all[id], claim{b.counts[id].End(), maxChecked, "the index"}, claim{b.ends[id], maxChecked, "its rows and records"})
	}
	for fork := range b.s.forks(b.metadata) {
		limit := int64(maxUnchecked)
		if len(b.found[fork.ID]) > 0 {
			limit = maxChecked
		}
		if !b.below[fork.ID] && !b.elsewhere(fork) {
			all[fork.Parent] = append(all[fork.Parent], claim{fork.Base, limit, "line " + fork.ID.String()})
		}
	}
	return all
}

// elsewhere reports whether the message before a line's first one is on another line than metadata.json says.
func (b *rebuilder) elsewhere(fork *ctxfolder.Line) bool {
	first, ok := b.found[fork.ID][fork.Base]
	if !ok {
		return false
	}
	before := b.idBefore(fork.Folder, first)
	return before != uuid.Nil && slices.ContainsFunc(b.metadata.Lines, func(l ctxfolder.Line) bool {
		return l.ID != fork.Parent && b.found[l.ID][fork.Base-1].ID == before
	})
}

// forks is [branch.Forks] without the lines that have another base or parent in the newest copy of metadata.json in the
// journals: that copy has a checksum.
func (s *state) forks(m *ctxfolder.Metadata) iter.Seq[*ctxfolder.Line] {
	return func(yield func(*ctxfolder.Line) bool) {
		copied := s.meta
		if copied == nil {
			copied = m
		}
		for fork := range branch.Forks(m) {
			if l, ok := copied.Line(fork.ID); (!ok || l.Base == fork.Base && l.Parent == fork.Parent) && !yield(fork) {
				return
			}
		}
	}
}

// short returns an error when a line ends before the base of a line that begins on it.
func (s *state) short(m *ctxfolder.Metadata) error {
	for fork := range s.forks(m) {
		of, ok := s.lines[fork.Parent]
		if !ok {
			of = newLine(Counts{Line: fork.Parent})
		}
		own, ok := s.lines[fork.ID]
		begins := !ok || own.Count == 0 || own.Base == fork.Base
		if begins && fork.Base > of.End() && fork.Base <= of.Base+2*of.Count+maxUnchecked {
			return fmt.Errorf("%w: line %s ends at position %d, but line %s begins on it at %d", ErrDamaged,
				fork.Parent, of.End(), fork.ID, fork.Base)
		}
	}
	return nil
}

// Complete makes every line as long as the lines that begin on it prove. Missing messages become lost and keep their
// positions. Complete reads metadata.json first, since its contents were committed before. If a rebuild does not
// believe that file, Complete does not rebuild again for the same file.
func (l *Log) Complete() error {
	if err := l.load(); err != nil {
		return err
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	for range 4 {
		before := l.dir.MetadataStamp()
		m, _, _, _ := l.dir.EffectiveMetadata(l.state.meta)
		if m == nil || l.state.unsaved || before.Same(l.disbelieved) || l.state.short(m) == nil {
			return nil
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
