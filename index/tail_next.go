package index

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// TailEnd returns a tail that begins after the last known record.
func (ix *Index) TailEnd() (*Tail, error) {
	t := &Tail{ix: ix, lines: map[uuid.UUID]Counts{}}
	err := ix.view(func(s *state) {
		t.at, t.metadata = s.at, s.metadata
		for id, ln := range s.lines {
			t.lines[id] = ln.Counts
		}
	})
	return t, err
}

// Tail returns a tail that begins after record seq. It fails with [ErrGap] if that does not exist.
func (ix *Index) Tail(seq uint64) (*Tail, error) {
	t := &Tail{ix: ix, lines: map[uuid.UUID]Counts{}, metadata: metadata{context: ix.dir.Context}}
	err := ix.reach(seq)
	if err == nil {
		err = ix.anew(func() error { return t.begin(seq) })
	}
	for err == nil && t.at.Seq < seq {
		var r Tailed
		var ok bool
		switch r, ok, err = t.next(); {
		case err != nil:
		case ok && r.Seq <= seq:
			err = t.pass(&r)
		case ok: // those up to seq were removed
			t.queue = slices.Insert(t.queue, 0, r)
			t.at = journal.Position{Seq: seq}
		case t.at.Seq < seq: // and no end of a log
			err = fmt.Errorf("%w: record %d", ErrGap, seq)
		}
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// reach reads on until a record is known.
func (ix *Index) reach(seq uint64) error {
	newest, err := ix.At()
	if err == nil && newest.Seq < seq {
		if err = ix.Refresh(); err == nil {
			newest, err = ix.At()
		}
	}
	if err == nil && newest.Seq < seq {
		err = fmt.Errorf("%w: record %d does not exist yet", ErrGap, seq)
	}
	return err
}

// Resume returns a tail that begins where another one was. It fails with [ErrGap] if the history is another one.
func (ix *Index) Resume(at journal.Position) (*Tail, error) {
	t, err := ix.Tail(at.Seq)
	if err == nil && t.at.Chain != 0 && at.Chain != 0 && t.at != at {
		t.Close()
		return nil, fmt.Errorf("%w: record %d belongs to a divergent history", ErrGap, at.Seq)
	}
	return t, err
}

// begin takes the newest state that a file has of a place up to record seq.
func (t *Tail) begin(seq uint64) (err error) {
	var all *segments
	var b json.RawMessage
	var at journal.Position
	if err := t.ix.view(func(s *state) {
		all = s.segments
		all.hold()
		for _, o := range s.logs {
			if o.From().Seq <= seq && (b == nil || o.From().Seq > at.Seq) {
				b, at = o.State(), o.From()
			}
		}
	}); err != nil {
		return err
	}
	defer all.release()
	if b != nil {
		return t.restore(b, at)
	}
	for _, o := range slices.Backward(all.all) {
		if o.name.To > seq {
			continue
		}
		if err := o.need(); err != nil {
			return err
		}
		if b, err = o.State(); err != nil {
			return err
		}
		return t.restore(b, o.To())
	}
	return nil // from the first record on
}

// Next returns the next record. ok is false if there is none yet. It fails with [ErrGap] if it is missing.
func (t *Tail) Next() (r Tailed, ok bool, err error) {
	if r, ok, err = t.next(); err != nil || !ok {
		return r, ok, err
	}
	if r.Body == nil && r.Entry != nil && r.Entry.Gone == archive.Here {
		t.readBodies(&r)
	}
	return r, true, t.pass(&r)
}

// next takes the next record from the queue, which it fills before.
func (t *Tail) next() (r Tailed, ok bool, err error) {
	for range 2 * looks {
		if len(t.queue) > 0 {
			r, t.queue = t.queue[0], t.queue[1:]
			return r, true, nil
		}
		if ok, err = t.fill(); err != nil || !ok {
			return r, false, err
		}
	}
	return r, false, fmt.Errorf("%w: after %d", ErrGap, t.at.Seq)
}

// pass applies a record to the counts.
func (t *Tail) pass(r *Tailed) error {
	switch r.Kind {
	case journal.Add, journal.Replace:
		e := r.Entry
		c, ok := t.lines[e.Line]
		if !ok {
			c = Counts{Line: e.Line, Base: e.Position}
		}
		was := int64(-1)
		if r.Kind == journal.Replace {
			was = r.was
		}
		c.add(e, was)
		t.lines[e.Line] = c
	case journal.Trim:
		x, err := parseTrim(r.Body)
		if err != nil {
			return err
		}
		c := t.lines[x.Line]
		c.Count, c.Bytes, c.Last = max(x.End-c.Base, 0), x.Bytes, x.Last
		t.lines[x.Line] = c
	case journal.Erase:
		x, err := parseErasure(r.Body)
		if err != nil {
			return err
		}
		c := t.lines[x.Line]
		c.Bytes = x.Bytes
		t.lines[x.Line] = c
	case journal.Metadata, journal.Change:
		if err := t.metadata.take(r.Kind, r.Body); err != nil {
			return fmt.Errorf("%w: record %d: %w", ErrGap, r.Seq, err)
		}
	}
	t.at = r.at
	return nil
}

// At returns the place after the last record that the tail returned.
func (t *Tail) At() journal.Position { return t.at }

// Metadata returns the newest metadata at the tail's place, nil for none. It must not be changed.
func (t *Tail) Metadata() *ctxfolder.Metadata { return t.m }

// Log returns the name of the log to which the next record goes, as far as is known; empty without one.
func (t *Tail) Log() (name string, err error) {
	if t.log == nil {
		return t.ix.NewestLog()
	}
	return cmp.Or(t.log.Next(), t.log.Name()), nil
}

// Counts returns the counts of each line at this place. Within a segment, the bytes are an estimate. They are valid
// until the next call.
func (t *Tail) Counts() map[uuid.UUID]Counts { return t.lines }
