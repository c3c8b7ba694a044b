package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/held"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// state is what a log knows of the lines, as of the last record read.
type state struct {
	dir        *ctxfolder.Dir
	lines      map[uuid.UUID]*line
	journals   []*journal                       // not folded, oldest first; writers append to the last one
	superseded []uint64                         // journals whose records a later one repeats
	kept       kept                             // the folded journals that still exist
	scraps     kept                             // of a rebuilt state: all journals, whole or not
	rows       openFiles[string]                // open row files
	packs      held.Table[uuid.UUID, *openPack] // open packs
	seq        uint64                           // of the last record read or written
	chain      uint64                           // of that record
	newestAt   int64                            // time of the newest message, nanoseconds since 1970; 0 if unknown
	width      int                              // of the rows on disk
	foldSeq    uint64                           // by index.json, everything up to here is folded
	settled    uint64                           // folded journals up to here are only a second copy
	unsaved    bool                             // rebuilt in memory: the index on disk is still damaged
	metadata   json.RawMessage
	payloads   map[Sum]payloadAt // in the unfolded journals
	problems   []Problem
	stray      stray    // after the newest journal
	foreign    []uint64 // of a rebuilt state: journals of another history

	packOrder []uuid.UUID // of a rebuilt state: the packs, in ascending order of precedence
}

// line is the state of one line.
type line struct {
	Counts
	Stored
	start   int64               // position of recent[0]; lower positions are folded
	recent  []Entry             // what the journals added
	byID    map[uuid.UUID]int64 // positions of recent; nil until first used
	changed map[int64]*Entry    // rows below start that a journal replaced
	cut     uint64              // the last record that cut the line, 0 for none
	unfound map[uuid.UUID]int64 // positions of rows marked lost; nil until first used
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

func (s *state) newest() *journal { return s.journals[len(s.journals)-1] }

func (s *state) note(kind, format string, args ...any) {
	s.problems = append(s.problems, Problem{kind, fmt.Sprintf(format, args...)})
}

func (s *state) close() error {
	var errs []error
	s.kept.only(nil)
	s.scraps.only(nil)
	s.rows.Clear()
	s.packs.Clear()
	for _, j := range s.journals {
		errs = append(errs, j.f.Close())
	}
	return errors.Join(errs...)
}

// closeBut closes the journals whose files no journal of held has open.
func (s *state) closeBut(held []*journal) {
	for _, j := range s.journals {
		if !slices.ContainsFunc(held, func(h *journal) bool { return h.f == j.f }) {
			_ = j.f.Close()
		}
	}
}

// openLive opens the unfolded journals: those that index.json names, and newer ones that continue them.
func (s *state) openLive(x *folded, held []*journal) error {
	for _, gen := range x.Journals {
		if gen < x.Live {
			continue
		}
		j, err := openJournal(s.dir, gen, held)
		if err != nil {
			return err
		}
		j.durable.end = j.first // index.json names a journal only when its begin record is durable
		s.journals = append(s.journals, j)
	}
	for {
		j, err := openJournal(s.dir, s.newest().gen+1, held)
		if errors.Is(err, fs.ErrNotExist) {
			return s.newest().there(s.dir)
		}
		if err != nil {
			return err
		}
		if !j.follows(s.newest()) {
			s.stray = stray{j.gen, j.info}
			_ = j.f.Close()
			return s.newest().there(s.dir)
		}
		s.journals = append(s.journals, j)
	}
}

// dropSuperseded drops journals if a later one repeats all their records. After a failed sync a new journal begins at
// the last fold and repeats what was whole in the previous ones.
func (s *state) dropSuperseded(held []*journal) {
	all := s.journals
	s.journals = nil
	next := uint64(math.MaxUint64)
	var keep []*journal
	for _, j := range slices.Backward(all) {
		if j.begin.Seq < next {
			keep, next = append(keep, j), j.begin.Seq
		} else {
			s.journals = append(s.journals, j)
			s.superseded = append(s.superseded, j.gen)
		}
	}
	s.closeBut(held)
	slices.Reverse(keep)
	s.journals = keep
}

// beginAt sets the state to one in which everything in these lines is folded.
func (s *state) beginAt(lines iter.Seq[FoldedLine], seq, chain uint64) {
	s.lines = map[uuid.UUID]*line{}
	for l := range lines {
		s.lines[l.Line] = newLine(l.Counts)
		s.lines[l.Line].Stored = l.Stored
	}
	s.seq, s.chain, s.foldSeq = seq, chain, seq
}

// replay applies every record of the journals.
func (s *state) replay() error {
	for i, j := range s.journals {
		// After a failed sync a journal begins at the last fold. A fold running then has advanced index.json since.
		folded := i == 0 && j.begin.Seq < s.seq
		if !folded && (j.begin.Seq != s.seq || j.begin.chain != s.chain) {
			return fmt.Errorf("%w: journal %d goes on from record %d, the one before ends at %d", ErrDamaged, j.gen, j.begin.Seq, s.seq)
		}
		if j.begin.Metadata != nil {
			s.metadata = j.begin.Metadata
		}
		limit := uint64(maxSeq)
		if i+1 < len(s.journals) {
			limit = s.journals[i+1].begin.Seq
		}
		news, err := j.read(limit, s.acked)
		if err != nil {
			return err
		}
		if err := s.take(j, news); err != nil {
			return err
		}
		if j.seq < s.seq || limit < maxSeq && s.seq != limit {
			return fmt.Errorf("%w: journal %d ends at record %d, the next goes on from %d", ErrDamaged, j.gen, s.seq, limit)
		}
	}
	return nil
}

// news holds what was read from a journal, for the state to take.
type news struct {
	changes []change
	torn    []byte // the first bytes after the last whole record, if they are not blank
	tornAt  int64
}

type change struct {
	head
	off      int64
	address  message.Address // for an append or replace
	metadata json.RawMessage
	payload  Sum
	trim     *trim
	lost     int64 // damaged records before it
}

// whole reads a folded journal. It fails where records are missing: the fold synced the journal, so no crash tore it.
func (j *journal) whole() (news, error) {
	n, err := j.read(maxSeq, func(record) bool { return true })
	for i := range n.changes {
		if c := &n.changes[i]; c.lost > 0 && err == nil {
			err = j.gap(c)
		}
	}
	return n, err
}

// usual is about the size of a record, in bytes.
const usual = 1 << 10

// read parses the records after the last known one, up to number limit.
func (j *journal) read(limit uint64, acked witness) (n news, err error) {
	var lost int64
	if size, serr := j.size(); serr == nil {
		n.changes = make([]change, 0, min(max(size-j.end, 0)/usual, 4096))
	}
	end, behind, err := j.scan(j.end, j.seq, j.chain, acked, func(rec record) error {
		if rec.seq > limit {
			return nil
		}
		c := change{lost: lost}
		lost = 0
		if err := c.parse(j, rec); err != nil {
			return err
		}
		n.changes = append(n.changes, c)
		return nil
	}, func(records uint64) { lost += int64(min(records, maxSeq)) })
	if err == nil && limit == maxSeq && behind == tailBlank {
		// Every write leaves blank space after its record. A journal that ends without it was cut short.
		if size, serr := j.size(); serr == nil && size == end {
			err = fmt.Errorf("%w: %s was cut short", ErrDamaged, ctxfolder.JournalFile(j.gen))
		}
	}
	if err == nil && limit == maxSeq && behind == tailTorn && j.harmed(end) {
		err = fmt.Errorf("%w: the end of %s", ErrDamaged, ctxfolder.JournalFile(j.gen))
	}
	if err == nil && behind == tailTorn {
		n.torn, n.tornAt = make([]byte, headSize+bodyHead), end
		m, _ := j.f.ReadAt(n.torn, end)
		n.torn = n.torn[:m]
	}
	return n, err
}

func (c *change) parse(j *journal, rec record) error {
	c.head, c.off = rec.head, rec.off
	body := rec.body
	whole := func() (err error) {
		if int64(len(body)) < rec.len {
			_, body, err = j.readWhole(rec.off, rec.off+rec.size())
		}
		return err
	}
	switch rec.kind {
	case KindMetadata:
		if err := whole(); err != nil {
			return err
		}
		c.metadata = slices.Clone(body)
	case KindAppend, KindReplace:
		var ok bool
		if c.address, ok = message.ParseAddress(body); ok {
			return nil
		}
		if err := whole(); err != nil {
			return err
		}
		env, err := message.ParseTrusted(body)
		if errors.Is(err, message.ErrVersion) {
			return fmt.Errorf("%w: journal %d, record %d: %w", ctxfolder.ErrVersion, j.gen, rec.seq, err)
		}
		if err != nil {
			return fmt.Errorf("%w: journal %d, record %d: %w", ErrDamaged, j.gen, rec.seq, err)
		}
		c.address = env.Address()
	case KindPayload:
		var ok bool
		if c.payload, ok = payloadSum(body); !ok {
			return fmt.Errorf("%w: journal %d, record %d: no payload's name", ErrDamaged, j.gen, rec.seq)
		}
	case KindTrim:
		if err := whole(); err != nil {
			return err
		}
		t, err := parseTrim(body)
		if err != nil {
			return fmt.Errorf("journal %d, record %d: %w", j.gen, rec.seq, err)
		}
		c.trim = &t
	case KindBegin:
		return fmt.Errorf("%w: journal %d begins a second time", ErrDamaged, j.gen)
	}
	// An unknown kind says nothing about messages: the store's features would have announced an incompatible one.
	return nil
}

// take applies what was read from a journal. Missing records, and torn ones whose message file exists, are damage: a
// rebuild has to look for their messages in the message files.
func (s *state) take(j *journal, n news) error {
	for i := range n.changes {
		c := &n.changes[i]
		if c.lost > 0 {
			return j.gap(c)
		}
		if c.seq <= s.seq {
			if c.seq == s.seq && c.chain != s.chain {
				return fmt.Errorf("%w: record %d of %s belongs to another history", ErrDamaged, c.seq, ctxfolder.JournalFile(j.gen))
			}
			j.moveBehind(c)
			continue
		}
		if c.metadata != nil {
			s.metadata = c.metadata
		}
		if c.kind == KindPayload {
			s.keep(c, j.gen)
		}
		if c.trim != nil {
			if err := s.trim(c.trim, c.seq); err != nil {
				return err
			}
		}
		if c.kind == KindAppend || c.kind == KindReplace {
			e := c.entry(j.gen)
			was := int64(-1)
			if c.kind == KindReplace {
				was = c.was
			}
			if err := s.put(&c.address, e, was); err != nil {
				return err
			}
			j.messages = c.off + c.size()
		}
		s.seq, s.chain = c.seq, c.chain
		j.moveBehind(c)
	}
	if n.torn != nil && s.committed(n.torn) {
		return fmt.Errorf("%w: the last record of %s is torn, and its message was committed", ErrDamaged, ctxfolder.JournalFile(j.gen))
	}
	return nil
}

// entry returns the entry of the message that a record commits.
func (c *change) entry(gen uint64) Entry {
	e := entryOf(&c.address, c.head)
	e.seq, e.gen, e.off = c.seq, gen, c.off
	return e
}

// moveBehind makes a record the last known one.
func (j *journal) moveBehind(c *change) {
	j.seq, j.chain, j.end = c.seq, c.chain, c.off+c.size()
	j.pass(recordEnd{j.seq, j.end}, c.mark)
}

// gap returns the error about missing records before a record.
func (j *journal) gap(before *change) error {
	return fmt.Errorf("%w: %d records before byte %d of %s", ErrDamaged, before.lost, before.off, ctxfolder.JournalFile(j.gen))
}

// keep notes where a journal has a payload.
func (s *state) keep(c *change, gen uint64) {
	if s.payloads == nil {
		s.payloads = map[Sum]payloadAt{}
	}
	s.payloads[c.payload] = payloadAt{gen, c.off, c.len, c.sum}
}

// put adds an entry to its line: at the end, or in place of the entry that it replaces.
func (s *state) put(a *message.Address, e Entry, was int64) error {
	ln := s.lines[a.Line]
	if ln == nil {
		ln = newLine(Counts{Line: a.Line, Base: e.Position})
		s.lines[a.Line] = ln
	}
	s.newestAt = max(s.newestAt, e.At)
	switch {
	case e.Position < ln.End():
		ln.change(e, was)
	case e.Position == ln.End():
		ln.push(e)
	default:
		return fmt.Errorf("%w: line %s goes on at position %d behind %d", ErrDamaged, a.Line, e.Position, ln.End())
	}
	return nil
}

// has reports whether a line has a message of its own at a position.
func (s *state) has(id uuid.UUID, position int64) bool {
	ln := s.lines[id]
	return ln != nil && position >= ln.Base && position < ln.End()
}

// entryAt returns the entry at one of a line's own positions.
func (s *state) entryAt(id uuid.UUID, position int64) (Entry, error) {
	if !s.has(id, position) {
		return Entry{}, fmt.Errorf("line %s has no position %d", id, position)
	}
	ln := s.lines[id]
	if position >= ln.start {
		return ln.recent[position-ln.start], nil
	}
	if e := ln.changed[position]; e != nil {
		return *e, nil
	}
	rows, err := s.readRows(ln, position, position+1)
	if err != nil {
		return Entry{}, err
	}
	return rows[0], nil
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

// committed reports whether the torn bytes after a journal are of a record whose message file exists and is not the
// file to be replaced. A writer creates a file only after its record is durable, so then this is damage and no torn
// write.
func (s *state) committed(torn []byte) bool {
	told, ok := message.ParseAddress(torn[min(headWidth(torn), len(torn)):])
	return ok && s.filed(&told)
}

// filed reports whether the file of a message holds this version or a newer one.
func (s *state) filed(told *message.Address) bool {
	b, _, err := s.dir.ReadMessage(s.folders()[told.Line], told.FileID())
	if err != nil {
		return false
	}
	env, err := message.Parse(b)
	return err == nil && env.ID == told.ID && env.Line == told.Line && env.Position == told.Position && !env.StoredAt.Before(told.StoredAt)
}

// acked is a witness: a writer creates the file of a message only after its record is durable.
func (s *state) acked(rec record) bool {
	if rec.kind != KindAppend && rec.kind != KindReplace {
		return false
	}
	a, ok := message.ParseAddress(rec.body)
	if !ok {
		return false
	}
	info, err := s.dir.StatMessage(s.folders()[a.Line], a.FileID())
	return err == nil && (ctxfolder.Untouched(info, rec.len, a.StoredAt) || s.filed(&a))
}

// folders returns the folders in which lines keep their messages, by metadata.json or its copy in the journals.
func (s *state) folders() map[uuid.UUID]string {
	m, err := s.dir.UsableMetadata(s.metadata)
	if err != nil {
		return nil
	}
	folders := make(map[uuid.UUID]string, len(m.Lines))
	for _, l := range m.Lines {
		folders[l.ID] = l.Folder
	}
	return folders
}
