package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	folded     journalSet                       // the folded journals that still exist
	all        journalSet                       // of a rebuilt state: all journals, whole or not
	rows       openFiles[string]                // open row files
	packs      held.Table[uuid.UUID, *openPack] // open packs
	seq        uint64                           // of the last record read or written
	chain      uint64                           // of that record
	newestAt   int64                            // time of the newest message, nanoseconds since 1970; 0 if unknown
	settled    uint64                           // folded journals up to here are only a second copy
	ownFrom    uint64                           // this handle wrote the records from this one to ownTo
	ownTo      uint64                           // 0 for none
	live       uint64                           // the journal in which index.json continues, after the record at offset
	offset     int64
	unsaved    bool                // rebuilt in memory: the index on disk is still damaged
	meta       *ctxfolder.Metadata // the newest usable metadata in index.json and the journals
	metadata   json.RawMessage     // that, if it was a copy
	copied     int                 // bytes of the last copy
	changes    int                 // changes since
	changed    int                 // bytes of them
	unparsed   []takenMetadata     // newer metadata
	payloads   map[Sum]payloadAt   // in the unfolded journals
	problems   []Problem
	foreign    []uint64 // of a rebuilt state: journals of another history

	packOrder []uuid.UUID // of a rebuilt state: the packs, in ascending order of precedence
}

func (s *state) newest() *journal { return s.journals[len(s.journals)-1] }

// place returns the place after the last known record.
func (s *state) place() Spot { return Spot{s.seq, s.chain} }

func (s *state) note(kind, format string, args ...any) {
	s.problems = append(s.problems, Problem{kind, fmt.Sprintf(format, args...)})
}

// close closes the files, except journals that held shares.
func (s *state) close(held []*journal) error {
	s.folded.files.Clear()
	s.all.files.Clear()
	s.rows.Clear()
	s.packs.Clear()
	return closeBut(s.journals, held)
}

// closeBut closes journals, except those whose files a journal of held has open.
func closeBut(journals, held []*journal) error {
	var errs []error
	for _, j := range journals {
		if !slices.ContainsFunc(held, func(h *journal) bool { return h.f == j.f }) {
			errs = append(errs, j.f.Close())
		}
	}
	return errors.Join(errs...)
}

// openLive opens the unfolded journals: those that index.json names, and newer ones that continue them.
func (s *state) openLive(x *indexFile, held []*journal) error {
	for _, gen := range x.Journals {
		if gen < x.Live {
			continue
		}
		j, err := openJournal(s.dir, gen, held)
		if err != nil {
			return err
		}
		j.durable.end = j.first // index.json names a journal only when its begin record is durable
		if gen == x.Live {
			j.skipFolded(x)
		}
		s.journals = append(s.journals, j)
	}
	for {
		j, err := openJournal(s.dir, s.newest().gen+1, held)
		if errors.Is(err, fs.ErrNotExist) {
			return s.newest().exists(s.dir)
		}
		if err != nil {
			return err
		}
		if !j.follows(s.newest()) {
			_ = j.f.Close()
			return s.newest().exists(s.dir)
		}
		s.journals = append(s.journals, j)
	}
}

// dropSuperseded drops journals if a later one repeats all their records. After a failed sync a new journal begins at
// the last fold and repeats what was whole in the previous ones. A journal that a fold counted up to an offset stays:
// rows name its records.
func (s *state) dropSuperseded(held []*journal) {
	var keep, repeated []*journal
	next := uint64(math.MaxUint64)
	for _, j := range slices.Backward(s.journals) {
		if j.begin.Seq < next || j.gen == s.live && s.offset > 0 {
			keep, next = append(keep, j), min(next, j.begin.Seq)
		} else {
			repeated = append(repeated, j)
			s.superseded = append(s.superseded, j.gen)
		}
	}
	_ = closeBut(repeated, held)
	slices.Reverse(keep)
	s.journals = keep
}

// replay applies every record of the journals since the fold. The last journal that begins at or before the fold has
// the first of them: after a failed sync a journal begins at the last fold, and a fold running then advances
// index.json.
func (s *state) replay() error {
	first := 0
	for i, j := range s.journals {
		if j.begin.Seq <= s.seq {
			first = i
		}
	}
	for i, j := range s.journals {
		if i < first {
			continue
		}
		folded := i == first && j.begin.Seq < s.seq
		if !folded && j.begin.place() != s.place() {
			return fmt.Errorf("%w: journal %d continues record %d, but the previous journal ends at record %d",
				ErrDamaged, j.gen, j.begin.Seq, s.seq)
		}
		if !folded {
			s.takeMetadata(KindMetadata, j.begin.Metadata, nil)
		}
		limit := uint64(maxSeq)
		if i+1 < len(s.journals) {
			limit = s.journals[i+1].begin.Seq
		}
		news, err := j.read(limit, nil)
		if err != nil {
			return err
		}
		if err := s.take(j, news); err != nil {
			return err
		}
		if news.torn {
			if err := s.judge(j); err != nil {
				return err
			}
		}
		if j.seq < s.seq || limit < maxSeq && s.seq != limit {
			return fmt.Errorf("%w: journal %d ends at record %d, but the next journal continues record %d", ErrDamaged, j.gen, s.seq, limit)
		}
	}
	return nil
}

// take applies what was read from a journal. Missing records are damage: a rebuild has to look for their messages in the
// message files.
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
		if s.takeMetadata(c.kind, c.metadata, c.parsed); c.metadata != nil || c.kind == KindReplace {
			j.replaced = c.off + c.size()
		}
		if c.kind == KindPayload {
			s.addPayload(c, j.gen)
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
		}
		s.seq, s.chain = c.seq, c.chain
		j.moveBehind(c)
	}
	j.checked = j.checked || n.blank
	return s.parseMetadata()
}

// addPayload notes where a journal has a payload.
func (s *state) addPayload(c *change, gen uint64) {
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
		return fmt.Errorf("%w: line %s continues at position %d, but ends at %d", ErrDamaged, a.Line, e.Position, ln.End())
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

// folders returns the folders in which lines keep their messages.
func (s *state) folders() map[uuid.UUID]string {
	m, _, _, _ := s.dir.EffectiveMetadata(s.meta)
	if m == nil {
		return nil
	}
	return m.Folders()
}
