package index

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// ErrBusy reports that nothing can be written before a rebuilt index is saved, or that somebody else is saving one. The
// caller releases the context lock and begins again.
var ErrBusy = errors.New("the index is being rebuilt; try again")

// rebuild builds the state from the existing files: whole rows, packs, message files for the gaps, and the journals on
// top. It writes nothing.
//
// A writer may rename a folder meanwhile, so that its files seem missing. If metadata.json was replaced since it was
// read, rebuild reads everything again.
func rebuild(dir *ctxfolder.Dir, held []*journal, x *indexFile) (*state, error) {
	for try := 0; ; try++ {
		before := dir.MetadataStamp()
		s, err := rebuildOnce(dir, held, x)
		if now := dir.MetadataStamp(); err != nil || try == 3 || now.Same(before) || now == before {
			return s, err
		}
		_ = closeBut(s.journals, held)
	}
}

func rebuildOnce(dir *ctxfolder.Dir, held []*journal, x *indexFile) (*state, error) {
	s := &state{dir: dir, unsaved: true, lines: map[uuid.UUID]*line{}}
	if err := s.openAll(held); err != nil {
		_ = closeBut(s.journals, held)
		return nil, err
	}
	s.selectHistory(held, x)
	b := &rebuilder{
		s:     s,
		x:     x,
		found: map[uuid.UUID]map[int64]Entry{},
		prev:  map[uuid.UUID]uuid.UUID{},
		rows:  map[fileKey]Entry{},
		filed: map[lineKey]int64{},
		older: map[[2]uuid.UUID]bool{},
	}
	b.readSources()
	b.expect(x)
	if err := cmp.Or(b.failed, b.run()); err != nil {
		_ = closeBut(s.journals, held)
		return nil, err
	}
	if x != nil {
		s.seq = max(s.seq, x.Seq)
	}
	// The rebuilt state begins a new chain: no existing journal has this place.
	s.seq, s.chain = s.seq+1, newChain()
	return s, nil
}

// openAll opens every journal whose begin record can be read.
func (s *state) openAll(held []*journal) error {
	gens, err := generations(s.dir)
	if err != nil {
		return err
	}
	s.all.gens = gens
	for _, gen := range gens {
		j, err := openJournal(s.dir, gen, held)
		switch {
		case err == nil:
			s.journals = append(s.journals, j)
		case errors.Is(err, ErrDamaged):
			s.note("journal", "%v", err)
		case errors.Is(err, fs.ErrNotExist):
			// A fold removed it meanwhile: its contents are in rows and files, which are read next.
		default:
			return err
		}
	}
	return nil
}

// generations returns the generations of all journals named in the context's folder, the oldest first.
func generations(dir *ctxfolder.Dir) (gens []uint64, err error) {
	for e, err := range dir.FS.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		if gen, ok := ctxfolder.ParseJournalFile(e.Name()); ok {
			gens = append(gens, gen)
		}
	}
	slices.Sort(gens)
	return gens, nil
}

// rebuilder collects entries from all sources.
type rebuilder struct {
	s        *state
	x        *indexFile // index.json, nil without one
	metadata *ctxfolder.Metadata
	reach    map[uuid.UUID]int64 // how far branches show lines
	found    map[uuid.UUID]map[int64]Entry
	prev     map[uuid.UUID]uuid.UUID // the id before each message
	rows     map[fileKey]Entry       // message files that rows name
	filed    map[lineKey]int64       // positions of the messages whose files were read
	lost     map[uuid.UUID]map[int64]Entry
	sources  []journalSource
	evidence
	waiting []json.RawMessage     // changes of metadata that was not found yet
	older   map[[2]uuid.UUID]bool // pairs of packs: the second has a newer version of a message in the first
	failed  error                 // a shortage
}

type lineKey struct{ line, id uuid.UUID }

type fileKey struct {
	folder string
	file   uuid.UUID
}

func (b *rebuilder) run() error {
	if b.x != nil {
		b.takeMetadata(KindMetadata, b.x.Metadata)
	}
	b.applyWaiting()
	m, is, _, err := b.s.dir.EffectiveMetadata(b.s.meta)
	if m == nil {
		return err
	}
	if is == ctxfolder.ProjectionNewer {
		raw := ctxfolder.RawMetadata(m)
		if m, err = ctxfolder.ParseMetadata(raw); err != nil {
			return err
		}
		b.s.setMetadata(m, takenMetadata{kind: KindMetadata, raw: raw})
		b.applyWaiting()
		m = b.s.meta
	}
	b.metadata, b.reach = m, branch.Reach(m)
	files, err := rowFiles(b.s.dir)
	if err != nil {
		return err
	}
	b.readRowFiles(files, true)
	if err := b.readPacks(); err != nil {
		return err
	}
	b.readRowFiles(files, false)
	folders := map[string]bool{}
	for _, ln := range m.Lines {
		folders[ln.Folder] = true
	}
	for folder := range folders {
		if err := b.readFolder(folder); err != nil {
			return err
		}
	}
	if err := b.readStrays(folders); err != nil {
		return err
	}
	b.readJournals()
	claims := b.claims()
	for i := range m.Lines {
		b.build(&m.Lines[i], claims[m.Lines[i].ID])
	}
	var total uint64
	for _, ln := range b.s.lines {
		total += uint64(ln.Count)
	}
	b.s.seq = max(b.s.seq, total+uint64(max(m.Revision, 0)))
	return nil
}

// readJournals takes every whole record; newer versions replace older ones.
func (b *rebuilder) readJournals() {
	for _, j := range b.s.journals {
		b.spots[j.begin.Seq] = j.begin.chain
	}
	for i := range b.sources { // a later journal is newer
		src := &b.sources[i]
		if src.open == nil {
			b.takeSalvaged(src)
			continue
		}
		ends := map[uuid.UUID]int64{}
		for _, c := range src.begin.Lines {
			ends[c.Line] = c.End()
		}
		behind := src.open.first
		for i := range src.changes {
			c := &src.changes[i]
			if c.lost > 0 {
				b.takeLost(src.open, behind, c, ends)
			}
			b.spots[c.seq] = c.chain
			b.take(c, src.gen)
			extend(ends, c)
			behind = c.off + c.size()
		}
	}
}

// takeLost notes how far the lost records before a record, from an offset on, extend their lines. Their messages keep their
// positions, even without a later message on the line. The beginning of an envelope counts if it continues its line.
func (b *rebuilder) takeLost(j *journal, from int64, before *change, ends map[uuid.UUID]int64) {
	beginning := []byte(`{"ctxdir":"` + message.Version + `","id":"`)
	r := &reader{f: j.f, size: before.off}
	defer r.giveBack(r.borrow())
	for off := from; off < before.off; {
		rest, err := r.bytes(off, window)
		if err != nil || len(rest) < len(beginning) {
			return
		}
		i := bytes.Index(rest, beginning)
		if i < 0 {
			off += int64(len(rest) - len(beginning) + 1)
			if rest[len(rest)-1] == 0 { // an envelope holds no zero byte
				off = vfs.NextData(r.f, off, before.off)
			}
			continue
		}
		off += int64(i)
		if rest, err = r.bytes(off, bodyHead); err != nil {
			return
		}
		off++
		a, ok := message.ParseAddress(rest)
		ln, known := b.metadata.Line(a.Line)
		if !ok || !known {
			continue
		}
		if end := max(ends[a.Line], ln.Base); a.Position >= end && a.Position-end < before.lost {
			ends[a.Line] = a.Position + 1
			b.noteEnd(a.Line, ends[a.Line])
			b.last[a.Line] = Entry{Position: a.Position, ID: a.ID}
		}
	}
}

// take applies a record of a journal.
func (b *rebuilder) take(c *change, gen uint64) {
	b.s.seq = max(b.s.seq, c.seq)
	b.takeMetadata(c.kind, c.metadata)
	if c.kind == KindPayload {
		b.s.addPayload(c, gen)
	}
	if c.trim != nil {
		b.cut(c.trim)
	}
	if c.kind != KindAppend && c.kind != KindReplace {
		return
	}
	e := c.entry(gen)
	b.prev[e.ID] = c.address.Prev
	if p, filed := b.filed[lineKey{c.address.Line, e.ID}]; filed && p != e.Position && b.found[c.address.Line][p].ID == e.ID {
		delete(b.found[c.address.Line], p) // a record has a checksum
	}
	if old, taken := b.found[c.address.Line][e.Position]; taken && old.ID != e.ID {
		b.noteClaim(c.address.Line, old, e.ID)
		delete(b.found[c.address.Line], e.Position) // no row, pack or file is newer than the journals
	}
	b.offer(c.address.Line, e)
}

// cut forgets what a line had after a position: leftover files and rows prove nothing. What a branch shows stays: the
// line was put back since, by records that may have been lost.
func (b *rebuilder) cut(t *trim) {
	end := max(t.End, b.reach[t.Line])
	gone := func(p int64, _ Entry) bool { return p >= end }
	maps.DeleteFunc(b.found[t.Line], gone)
	maps.DeleteFunc(b.lost[t.Line], gone)
	if b.ends[t.Line] > end {
		b.ends[t.Line] = end
	}
	if was := b.counts[t.Line]; was.End() > end {
		was.Count, was.Last = max(end-was.Base, 0), uuid.Nil
		b.counts[t.Line] = was
	}
}

// addLost notes a row that says why a message is unavailable. It counts only if nothing else is found, but always for
// an erased message.
func (b *rebuilder) addLost(id uuid.UUID, e Entry) {
	if b.lost == nil {
		b.lost = map[uuid.UUID]map[int64]Entry{}
	}
	if b.lost[id] == nil {
		b.lost[id] = map[int64]Entry{}
	}
	b.lost[id][e.Position] = e
}

// offer takes an entry for its position. The journals come last: of one message the newer version counts; of two
// messages that claim one position, the one that was committed first.
func (b *rebuilder) offer(id uuid.UUID, e Entry) {
	at := b.found[id]
	if at == nil {
		at = map[int64]Entry{}
		b.found[id] = at
	}
	old, taken := at[e.Position]
	switch {
	case !taken:
	case old.ID == e.ID && (e.At >= old.At):
	case old.ID == e.ID:
		b.isOlder(e, old)
		return
	default:
		b.noteClaim(id, old, e.ID)
		if cmp.Compare(e.At, old.At) >= 0 {
			return
		}
	}
	b.isOlder(old, e)
	at[e.Position] = e
	b.s.newestAt = max(b.s.newestAt, e.At)
}

func (b *rebuilder) noteClaim(line uuid.UUID, old Entry, by uuid.UUID) {
	b.s.note("message", "messages %[3]s and %[4]s both claim position %[2]d of line %[1]s", line, old.Position, old.ID, by)
}

// isOlder notes which of two packs has the newer version of a message.
func (b *rebuilder) isOlder(old, now Entry) {
	if old.Pack != now.Pack && archived(old) && archived(now) {
		b.older[[2]uuid.UUID{old.Pack, now.Pack}] = true
	}
}
