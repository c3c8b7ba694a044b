package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// Tail reads the records of a history in order, from a place on, as they are committed. It keeps the counts of each line
// and the newest metadata as of that place. It may read a record shortly before it is durable.
type Tail struct {
	ix    *Index
	at    journal.Position // after the last record read; the chain is 0 within a segment
	lines map[uuid.UUID]Counts
	metadata

	queue []Tailed
	from  *openSegment // which has the queue, until it is empty
	log   *openLog     // of its own: reading on is not for several
}

// Tailed is a record that a [Tail] returns.
type Tailed struct {
	Seq   uint64
	Kind  journal.Kind
	More  bool   // the commit goes on with the next record
	Entry *Entry // of a message
	// Body is as it was committed. It is empty of a payload that was sealed, and of a message that was erased, of which a
	// newer version was sealed, or whose copy in the log is not whole.
	Body []byte

	at  journal.Position // after it; without a chain in a segment
	was int64            // of a replaced message: its size
}

// Erasure returns the messages that an erase record erases.
func (r *Tailed) Erasure() (line uuid.UUID, positions []int64, err error) {
	x, err := parseErasure(r.Body)
	return x.Line, x.Positions, err
}

func (t *Tail) restore(b []byte, at journal.Position) error {
	s := state{context: t.ix.dir.Context}
	if err := s.restore(b, at); err != nil {
		return err
	}
	t.lines = make(map[uuid.UUID]Counts, len(s.lines))
	for id, ln := range s.lines {
		t.lines[id] = ln.Counts
	}
	t.metadata, t.at = s.metadata, at
	return nil
}

// Close releases the files.
func (t *Tail) Close() {
	if t.from != nil {
		t.from.release()
	}
	if t.log != nil {
		t.log.release()
	}
	t.from, t.log, t.queue = nil, nil, nil
}

// fill reads on. ok is false if there is nothing yet; it may also have found nothing in a file that ended.
func (t *Tail) fill() (ok bool, err error) {
	if t.from != nil {
		end := t.from.To()
		b, err := t.from.State()
		if err == nil {
			err = t.restore(b, end)
		}
		t.from.release()
		if t.from = nil; err != nil {
			return false, err
		}
	}
	if t.log != nil {
		return t.fillFromLog()
	}
	var seg *openSegment
	var log string
	var isEnd bool
	find := func(s *state) {
		isEnd = s.at.Seq == t.at.Seq
		for _, o := range s.segments.all {
			if seg == nil && o.name.To > t.at.Seq && o.hold() {
				seg = o
			}
		}
		for _, o := range s.logs {
			if seg == nil && o.From().Seq <= t.at.Seq {
				log = o.Name() // the newest such
			}
		}
	}
	err = t.ix.view(find)
	if err == nil && seg == nil && log == "" { // the newest log is missing: the next writer begins another one
		if err = t.ix.Refresh(); err == nil {
			err = t.ix.view(find)
		}
	}
	switch {
	case err != nil:
		return false, err
	case seg != nil:
		if err := seg.need(); err != nil {
			seg.release()
			if errors.Is(err, fs.ErrNotExist) { // it was merged
				err = t.ix.Reload()
			}
			return true, err
		}
		return true, t.fillFromSegment(seg)
	case log == "" && isEnd:
		return false, nil
	case log == "":
		return false, fmt.Errorf("%w: after %d", ErrGap, t.at.Seq)
	}
	t.log, err = openLogIn(t.ix.dir, log)
	if errors.Is(err, fs.ErrNotExist) { // it was sealed
		return true, t.ix.Reload()
	}
	if err != nil {
		return false, err
	}
	return t.fillFromLog()
}

// fillFromLog reads on in a log, or goes on to the next one.
func (t *Tail) fillFromLog() (ok bool, err error) {
	if t.log.Next() == "" && !t.log.Unchanged() {
		_, err := t.log.Read(func(rec journal.Record) error {
			r := record{Record: rec, log: t.log}
			if err := r.parse(); err != nil {
				return err
			}
			if rec.Seq > t.at.Seq {
				return t.take(&r)
			}
			return t.isAt(rec.Position())
		}, nil)
		if err == nil && t.log.At().Seq < t.at.Seq {
			err = fmt.Errorf("%w: %s ends before record %d", ErrGap, t.log.Name(), t.at.Seq)
		}
		if err == nil {
			err = t.isAt(t.log.From())
		}
		if err != nil {
			return false, err
		}
	}
	if len(t.queue) > 0 {
		return true, nil
	}
	if t.log.Next() == "" {
		if !t.log.IsThere() { // it was copied, or is of a context that is gone
			t.leave()
			return true, t.ix.Reload()
		}
		return false, nil
	}
	t.at = t.log.At()
	next, err := openLogIn(t.ix.dir, t.log.Next())
	switch {
	case errors.Is(err, journal.ErrBlank):
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		t.leave() // a segment has it
		return true, t.ix.Reload()
	case err != nil:
		return false, err
	case next.IsTorn() && next.From() != t.at:
		next.release()
		return false, nil // it has not begun
	}
	t.leave()
	t.log = next
	return true, nil
}

// isAt fails with ErrGap if a log has another record at the tail's place: a copy of another history took its place.
func (t *Tail) isAt(at journal.Position) error {
	if at.Seq == t.at.Seq && t.at.Chain != 0 && at != t.at {
		return fmt.Errorf("%w: record %d belongs to a divergent history", ErrGap, at.Seq)
	}
	return nil
}

func (t *Tail) leave() {
	t.log.release()
	t.log = nil
}

// take queues a record of a log.
func (t *Tail) take(r *record) (err error) {
	q := Tailed{Seq: r.Seq, Kind: r.Kind, More: r.More, at: r.Position(), was: r.Was}
	if r.Kind == journal.Add || r.Kind == journal.Replace {
		e := r.entry()
		q.Entry = &e
	}
	if q.Body = slices.Clone(r.Body); int64(len(q.Body)) < r.Len {
		if q.Body, err = t.log.ReadBody(r.Off); err != nil {
			return err
		}
	}
	t.queue = append(t.queue, q)
	return nil
}

// fillFromSegment queues the records of a segment after the place, without the bodies of messages. It takes the segment
// over.
func (t *Tail) fillFromSegment(o *openSegment) error {
	t.from = o
	if o.From().Seq > t.at.Seq {
		return fmt.Errorf("%w: after %d", ErrGap, t.at.Seq)
	}
	for _, line := range slices.SortedFunc(maps.Keys(o.spans), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		span := o.spans[line]
		for row, err := range o.Rows(line, span.From, span.To) {
			if err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			if row.Seq > t.at.Seq {
				t.queue = append(t.queue, tailedOf(&row, o))
			}
		}
	}
	for x, err := range o.Others(t.at.Seq + 1) {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		q := Tailed{Seq: x.Seq, Kind: journal.Kind(x.Kind), More: x.More, Body: x.Body, at: journal.Position{Seq: x.Seq}}
		if x.Kind == archive.KindSuperseded {
			row, err := archive.ParseSuperseded(&x)
			if err != nil {
				return err
			}
			q = tailedOf(&row, o)
		}
		t.queue = append(t.queue, q)
	}
	slices.SortFunc(t.queue, func(a, b Tailed) int { return cmp.Compare(a.Seq, b.Seq) })
	return nil
}

func tailedOf(r *archive.Row, o *openSegment) Tailed {
	e := entryOfRow(r, o)
	kind := journal.Add
	if r.Replaces {
		kind = journal.Replace
	}
	return Tailed{Seq: r.Seq, Kind: kind, More: r.More, Entry: &e, at: journal.Position{Seq: r.Seq}, was: r.Was}
}

// readTogether is how many messages of a segment are read at once.
const readTogether = 64

// readBodies reads the message of a record, and those of the next ones.
func (t *Tail) readBodies(r *Tailed) {
	all := []*Tailed{r}
	for i := range t.queue {
		if q := &t.queue[i]; len(all) < readTogether && q.Entry != nil && q.Body == nil && q.Entry.Gone == archive.Here {
			all = append(all, q)
		}
	}
	entries := make([]Entry, len(all))
	for i, q := range all {
		entries[i] = *q.Entry
	}
	bodies := make([][]byte, len(entries))
	t.ix.Read(entries, bodies)
	for i, b := range bodies {
		all[i].Body = b
	}
}
