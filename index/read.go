package index

import (
	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/google/uuid"
)

// Read adds to out the envelopes of entries that it does not have, as they were committed. It leaves nil where there is
// none, or none that is whole: [Index.ReadOne] says why.
func (ix *Index) Read(entries []Entry, out [][]byte) {
	for i := 0; i < len(entries); {
		n := 1
		for i+n < len(entries) && entries[i].seg != nil && entries[i+n].seg == entries[i].seg && (out[i] == nil) == (out[i+n] == nil) {
			n++
		}
		if out[i] == nil {
			readFrom(entries[i:i+n], out[i:i+n])
		}
		i += n
	}
	for i := range entries {
		if e := &entries[i]; out[i] == nil && e.Gone == archive.Here {
			out[i], _ = ix.readAgain(e)
		}
	}
}

// ReadOne returns the envelope of an entry. The error wraps [ErrErased] or [ErrDamaged].
func (ix *Index) ReadOne(e *Entry) ([]byte, error) {
	switch e.Gone {
	case archive.Erased:
		return nil, ErrErased
	case archive.Lost:
		return nil, damaged("message %s: no intact copy", e.ID)
	}
	out := make([][]byte, 1)
	if readFrom([]Entry{*e}, out); out[0] != nil {
		return out[0], nil
	}
	return ix.readAgain(e)
}

// readFrom reads entries of one segment, or one entry of a log.
func readFrom(entries []Entry, out [][]byte) {
	e := &entries[0]
	switch {
	case e.seg != nil && e.seg.hold():
		rows := make([]archive.Row, len(entries))
		for i := range entries {
			rows[i] = entries[i].inSegment()
		}
		copy(out, e.seg.ReadMessages(rows))
		e.seg.release()
	case e.log != nil && e.log.hold():
		out[0], _ = e.log.ReadBody(e.off)
		e.log.release()
	}
}

// readAgain reads a version of a message that another file may have by now.
func (ix *Index) readAgain(e *Entry) ([]byte, error) {
	now, ok, err := ix.Entry(e.Line, e.Position)
	if err != nil {
		return nil, err
	}
	if !ok || now.Seq != e.Seq || now.ID != e.ID || now.Gone != e.Gone {
		return nil, damaged("message %s was replaced or removed", e.ID)
	}
	switch {
	case now.seg != nil && now.seg.hold():
		defer now.seg.release()
		return now.seg.ReadMessage(now.inSegment())
	case now.log != nil && now.log.hold():
		defer now.log.release()
		return now.log.ReadBody(now.off)
	}
	return nil, damaged("message %s not found in logs and segments", e.ID)
}

// Payload returns a payload that a log has. ok is false if none does: those of sealed logs are where [Options.Payloads]
// put them.
func (ix *Index) Payload(sum blob.Sum) (b []byte, ok bool, err error) {
	var at payloadAt
	if err := ix.view(func(s *state) {
		if at, ok = s.payloads[sum]; ok {
			at.log.hold()
		}
	}); err != nil || !ok {
		return nil, false, err
	}
	defer at.log.release()
	body, err := at.log.ReadBody(at.off)
	if err == nil {
		b, err = parsePayload(body)
	}
	return b, err == nil, err
}

// IsNew reports whether no line ever had an id. It looks into segments only for an id that is not above all others.
func (ix *Index) IsNew(id uuid.UUID) (bool, error) {
	var lines []uuid.UUID
	err := ix.view(func(s *state) {
		for line, ln := range s.lines {
			if !ln.IsAbove(id) {
				lines = append(lines, line)
			}
		}
	})
	if err != nil {
		return false, err
	}
	for _, line := range lines {
		if _, ok, err := ix.Find(line, id, 1<<62); ok || err != nil {
			return false, err
		}
	}
	return true, nil
}
