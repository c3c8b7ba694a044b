package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/ctxdir/ctxdir/blob"
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
func rebuild(dir *ctxfolder.Dir, held []*journal, x *folded) (*state, error) {
	for try := 0; ; try++ {
		before := dir.MetadataStamp()
		s, err := rebuildOnce(dir, held, x)
		if now := dir.MetadataStamp(); err != nil || try == 3 || now.Same(before) || now == before {
			return s, err
		}
		_ = closeBut(s.journals, held)
	}
}

func rebuildOnce(dir *ctxfolder.Dir, held []*journal, x *folded) (*state, error) {
	s := &state{dir: dir, unsaved: true, lines: map[uuid.UUID]*line{}}
	if err := s.openAll(held); err != nil {
		_ = closeBut(s.journals, held)
		return nil, err
	}
	s.keepOwn(held, x)
	b := &rebuilder{
		s:     s,
		x:     x,
		found: map[uuid.UUID]map[int64]Entry{},
		prev:  map[uuid.UUID]uuid.UUID{},
		rows:  map[fileKey]Entry{},
		filed: map[lineKey]int64{},
		older: map[[2]uuid.UUID]bool{},
	}
	b.readScraps()
	b.expect(x)
	if err := b.run(); err != nil {
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
	s.scraps.gens = gens
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
	x        *folded // index.json, nil without one
	metadata *ctxfolder.Metadata
	reach    map[uuid.UUID]int64 // how far branches show lines
	found    map[uuid.UUID]map[int64]Entry
	prev     map[uuid.UUID]uuid.UUID // the id before each message
	rows     map[fileKey]Entry       // message files that rows name
	filed    map[lineKey]int64       // positions of the messages whose files were read
	lost     map[uuid.UUID]map[int64]Entry
	evidence
	older map[[2]uuid.UUID]bool // pairs of packs: the second has a newer version of a message in the first
}

type lineKey struct{ line, id uuid.UUID }

type fileKey struct {
	folder string
	file   uuid.UUID
}

func (b *rebuilder) run() error {
	m, err := b.s.dir.UsableMetadata(b.s.metadata)
	if err != nil {
		return err
	}
	b.metadata, b.reach = m, branch.Reach(m)
	if m.Renaming != nil {
		b.s.dir.SetRenaming(m.Renaming)
	}
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
	if err := b.readJournals(); err != nil {
		return err
	}
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

// readRowFiles reads the row files that index.json names, or the others. Those may be of another history: the named
// ones and the packs count more. Without index.json all count as named, the newest first.
func (b *rebuilder) readRowFiles(files map[uuid.UUID][]uint64, named bool) {
	for i := range b.metadata.Lines {
		ln := &b.metadata.Lines[i]
		numbers := slices.Clone(files[ln.ID])
		slices.Sort(numbers)
		for _, number := range slices.Backward(numbers) {
			is := b.x == nil || slices.ContainsFunc(b.x.Lines, func(l FoldedLine) bool { return l.Line == ln.ID && l.Rows == number })
			if is == named {
				b.readRowFile(ln, number)
			}
		}
	}
}

// readRowFile takes the whole rows.
func (b *rebuilder) readRowFile(ln *ctxfolder.Line, number uint64) {
	f, err := b.s.dir.FS.OpenFile(ctxfolder.RowsFile(ln.ID, number), os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	row := make([]byte, rowWidth)
	r := &reader{f: f}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		r.size = info.Size()
	}
	end := ln.Base // after the position of the row, if readable: rows ascend
	for n := int64(0); ; n++ {
		c, err := r.bytes(n*rowWidth, rowWidth)
		if err != nil || len(c) < rowWidth {
			b.prove(ln.ID, end)
			return
		}
		copy(row, c)
		e, err := parseRow(row)
		if err != nil && row[0] == 0 {
			if next := vfs.NextData(f, n*rowWidth, r.size) / rowWidth; next > n+1 {
				n = next - 1 // a hole proves no positions
				continue
			}
		}
		if err != nil {
			end++
			continue
		}
		end = max(end, e.Position+1)
		switch {
		case e.Lost != "":
			b.lose(ln.ID, e)
		case b.found[ln.ID][e.Position].ID != e.ID && b.found[ln.ID][e.Position].ID != uuid.Nil:
			b.claimed(ln.ID, b.found[ln.ID][e.Position], e.ID)
		default:
			b.offer(ln.ID, e)
			b.rows[fileKey{ln.Folder, e.FileID()}] = e
		}
	}
}

// readFolder reads the message files that no row names, and those touched since. A touched file may hold a newer
// version than its row: its stored_at distinguishes that from an edit by hand.
func (b *rebuilder) readFolder(folder string) error {
	err := b.s.dir.MessageIDs(folder, func(id uuid.UUID) error {
		row, told := b.rows[fileKey{folder, id}]
		if told {
			info, err := b.s.dir.StatMessage(folder, id)
			if errors.Is(err, fs.ErrNotExist) || err == nil && ctxfolder.Untouched(info, row.Size, row.StoredAt()) {
				return nil
			}
		}
		raw, _, err := b.s.dir.ReadMessage(folder, id)
		if err != nil {
			b.s.note("message", "%s/%s: %v", folder, id, err)
			return nil
		}
		env, err := message.Parse(raw)
		if a, ok := message.ParseAddress(raw); err != nil && !told && ok && a.FileID() == id && b.belongs(folder, &a) == nil {
			b.lose(a.Line, Entry{Position: a.Position, ID: a.ID, File: a.File, Lost: "its file is damaged"})
		}
		if err == nil && env.FileID() != id {
			err = fmt.Errorf("it holds message %s", env.ID)
		}
		a := env.Address()
		if err == nil {
			err = b.belongs(folder, &a)
		}
		if err == nil && told && a.Position != row.Position {
			err = fmt.Errorf("it says position %d, its row %d", a.Position, row.Position)
		}
		if err != nil {
			b.s.note("message", "%s/%s: %v", folder, id, err)
			return nil
		}
		if told && env.StoredAt.UnixNano() <= row.At {
			return nil
		}
		b.offerFile(&a, raw)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// belongs returns why a message has no place in a folder, nil if it has one.
func (b *rebuilder) belongs(folder string, a *message.Address) error {
	ln, ok := b.metadata.Line(a.Line)
	if b.below[a.Line] = b.below[a.Line] || ok && a.Position < ln.Base; !ok || ln.Folder != folder || a.Position < ln.Base {
		return fmt.Errorf("it is of line %s, position %d, which has no place here", a.Line, a.Position)
	}
	return nil
}

// offerFile takes a message from its file.
func (b *rebuilder) offerFile(a *message.Address, raw []byte) {
	if old, taken := b.found[a.Line][a.Position]; taken && old.ID != a.ID {
		if p, filed := b.filed[lineKey{a.Line, old.ID}]; !filed || p != a.Position {
			b.claimed(a.Line, old, a.ID) // rows and packs have checksums, the position in a file has none
			return
		}
	}
	b.prev[a.ID] = a.Prev
	b.filed[lineKey{a.Line, a.ID}] = a.Position
	e := entryOf(a, head{len: int64(len(raw)), sum: bodySum(raw)})
	e.Payloads = max(e.Payloads, blob.Count(raw)) // after an edit by hand its own count may be wrong
	b.offer(a.Line, e)
}

// readStrays takes messages from folders of no line if their places are empty. A folder may have got another name, or
// metadata.json another name for it. A repair decides where such files belong.
func (b *rebuilder) readStrays(known map[string]bool) error {
	folders, err := b.s.dir.Folders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if known[folder] {
			continue
		}
		err := b.s.dir.MessageIDs(folder, func(id uuid.UUID) error {
			raw, _, err := b.s.dir.ReadMessage(folder, id)
			if err != nil {
				return nil // no file was expected here
			}
			env, err := message.Parse(raw)
			if err != nil || env.FileID() != id {
				return nil
			}
			ln, ok := b.metadata.Line(env.Line)
			if _, found := b.found[env.Line][env.Position]; !ok || found || env.Position < ln.Base {
				return nil
			}
			a := env.Address()
			b.offerFile(&a, raw)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readJournals takes every whole record; newer versions replace older ones.
func (b *rebuilder) readJournals() error {
	opened := map[uint64]*journal{}
	for _, j := range b.s.journals {
		opened[j.gen] = j
		b.spots[j.begin.Seq] = j.begin.chain
	}
	for _, gen := range b.s.scraps.gens { // a later journal is newer
		j := opened[gen]
		if j == nil {
			b.takeScrap(gen)
			continue
		}
		b.newer(j.begin.Metadata)
		n, err := j.read(maxSeq, b.s.acked)
		if err != nil { // records read until then count
			b.s.note("journal", "%s: %v", ctxfolder.JournalFile(j.gen), err)
		}
		for i := range n.changes {
			b.spots[n.changes[i].seq] = n.changes[i].chain
			b.take(&n.changes[i], gen)
		}
	}
	return nil
}

// take applies a record of a journal.
func (b *rebuilder) take(c *change, gen uint64) {
	b.s.seq = max(b.s.seq, c.seq)
	b.newer(c.metadata)
	if c.kind == KindPayload {
		b.s.keep(c, gen)
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
		b.claimed(c.address.Line, old, e.ID)
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

// lose notes a row that says why a message is unavailable. It counts only if nothing else is found, but always for an
// erased message.
func (b *rebuilder) lose(id uuid.UUID, e Entry) {
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
		b.claimed(id, old, e.ID)
		if cmp.Compare(e.At, old.At) >= 0 {
			return
		}
	}
	b.isOlder(old, e)
	at[e.Position] = e
	b.s.newestAt = max(b.s.newestAt, e.At)
}

func (b *rebuilder) claimed(line uuid.UUID, old Entry, by uuid.UUID) {
	b.s.note("message", "line %s, position %d is claimed by %s and %s", line, old.Position, old.ID, by)
}

// isOlder notes which of two packs has the newer version of a message.
func (b *rebuilder) isOlder(old, now Entry) {
	if old.Pack != now.Pack && archived(old) && archived(now) {
		b.older[[2]uuid.UUID{old.Pack, now.Pack}] = true
	}
}

// build assembles a line. Unclaimed positions are lost; the next message names their ids. If a record or a row has a
// position below the base in metadata.json, that base is wrong.
func (b *rebuilder) build(of *ctxfolder.Line, claims []claim) {
	at := b.found[of.ID]
	if at == nil {
		at = map[int64]Entry{}
	}
	for p, e := range b.lost[of.ID] {
		if now, found := at[p]; !found || e.Lost == Erased && (now.seq == 0 || now.ID == e.ID) {
			at[p] = b.spared(of.ID, e)
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
			ln.push(b.missing(of.ID, ln.End(), uuid.Nil))
		}
		if ln.End() < p {
			ln.push(b.missing(of.ID, ln.End(), b.before(of.Folder, at[p])))
		}
		ln.push(at[p])
	}
	was := b.counts[of.ID]
	for end := b.end(ln, int64(len(at)), claims); ln.End() < end; {
		var last uuid.UUID
		if ln.End() == was.End()-1 {
			last = was.Last
		}
		ln.push(b.missing(of.ID, ln.End(), last))
	}
}

// named sets the id of a lost message from the first message of a line that begins right after it.
func (b *rebuilder) named(line uuid.UUID, lost Entry) Entry {
	for i := range b.metadata.Lines {
		fork := &b.metadata.Lines[i]
		if first, ok := b.found[fork.ID][fork.Base]; ok && lost.ID == uuid.Nil && fork.Parent == line && fork.Base == lost.Position+1 {
			lost.ID = b.before(fork.Folder, first)
		}
	}
	// A message that claims another position exists: no line has a message twice.
	if p, filed := b.filed[lineKey{line, lost.ID}]; filed && b.found[line][p].ID == lost.ID {
		lost.ID = uuid.Nil
	}
	return lost
}

// before returns the id of the message before e, as far as e names it.
func (b *rebuilder) before(folder string, e Entry) uuid.UUID {
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
