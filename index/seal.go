package index

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// Seal makes a segment of each log that had ended when Rotate returned, the oldest first, and removes the log. The caller
// holds the lock for sealing since then, which is not the one of writers.
//
// Crash order: payloads of the log are durable elsewhere, and messages that it erases, or cuts off, are gone from older
// segments, before it is sealed: until then its records have them, or say that they are gone. The segment is durable under its name before
// the log goes. Until the log is gone, both have the records, and the segment counts.
func (ix *Index) Seal(o archive.Options) error {
	for {
		ix.advance.Lock()
		log, state, err := ix.sealable()
		ix.advance.Unlock()
		if err != nil || log == nil {
			return err
		}
		err = ix.seal(log, state, o)
		log.release()
		if err != nil {
			return err
		}
	}
}

// sealable returns the oldest log, for one more user, and the state at its end. The log that continues it is durable.
func (ix *Index) sealable() (o *openLog, state []byte, err error) {
	s := ix.state
	if len(s.logs) < 2 || s.logs[0].At().Seq > ix.rotated {
		return nil, nil, nil // a log that ended later may have no durable log after it
	}
	if len(s.logs) == 2 && !s.logs[1].Begun() {
		return nil, nil, fmt.Errorf("%w: %s was replaced", journal.ErrDurability, s.logs[1].Name())
	}
	o, state = s.logs[0], s.logs[1].State()
	if state == nil {
		return nil, nil, damaged("%s: its begin record", s.logs[1].Name())
	}
	o.hold()
	return o, state, nil
}

func (ix *Index) seal(o *openLog, state []byte, opts archive.Options) error {
	x := newSealing(ix)
	if err := x.read(o); err != nil {
		return err
	}
	if err := x.eraseFromSegments(opts); err != nil {
		return err
	}
	if err := x.keepPayloads(o); err != nil {
		return err
	}
	if o.At() == o.From() {
		return ix.sealedAs(o, nil) // it began, and another one began in its place
	}
	w, err := archive.Create(ix.dir.Segments, ix.dir.Context, opts)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := x.write(w, func(v *sealed) ([]byte, error) { return o.ReadBody(v.off) }); err != nil {
		return err
	}
	name, _, err := w.Commit(o.From(), o.At(), state)
	if err != nil {
		return err
	}
	seg, err := openSegmentIn(ix.dir, name)
	if err != nil {
		return err
	}
	defer seg.release()
	return ix.sealedAs(o, seg)
}

// sealed is the newest version of a message that a log has.
type sealed struct {
	archive.Row
	off int64
}

type sealing struct {
	ix       *Index
	lines    map[uuid.UUID]map[int64]sealed
	erased   map[uuid.UUID]map[int64]bool // positions that older segments may have
	cut      map[uuid.UUID]int64          // where lines ended meanwhile: older segments may have messages from there on
	others   []archive.Other
	payloads []int64 // offsets
}

func newSealing(ix *Index) *sealing {
	return &sealing{ix: ix, lines: map[uuid.UUID]map[int64]sealed{}, erased: map[uuid.UUID]map[int64]bool{}, cut: map[uuid.UUID]int64{}}
}

// read reads a log that ended.
func (x *sealing) read(o *openLog) error {
	l, err := journal.Open(x.ix.dir.Logs, o.Name()) // the state reads on in the other one
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // it was only read
	from, lost := &openLog{Log: l}, uint64(0)
	tail, err := l.Read(func(rec journal.Record) error {
		r := record{Record: rec, log: from}
		if err := r.parse(); err != nil {
			return err
		}
		return x.take(&r)
	}, func(n uint64) { lost += n })
	if err == nil && (lost > 0 || tail != journal.Clean || l.At() != o.At()) {
		err = damaged("%s has changed", o.Name())
	}
	return err
}

func (x *sealing) take(r *record) error {
	switch r.Kind {
	case journal.Add, journal.Replace:
		a := &r.address
		x.put(sealed{archive.Row{
			Line: a.Line, Position: a.Position, Seq: r.Seq, ID: a.ID, At: a.StoredAt.UnixMicro(), Size: r.Len, Sum: r.Sum,
			Payloads: a.Payloads, Replaces: r.Kind == journal.Replace, Was: r.Was, More: r.More,
		}, r.Off})
		return nil
	case journal.Payload:
		x.payloads = append(x.payloads, r.Off)
		x.other(r, nil)
		return nil
	case journal.Trim:
		if end, ok := x.cut[r.trim.Line]; !ok || r.trim.End < end {
			x.cut[r.trim.Line] = r.trim.End
		}
		for p, old := range x.lines[r.trim.Line] {
			if p >= r.trim.End {
				delete(x.lines[r.trim.Line], p)
				x.others = append(x.others, archive.Superseded(&old.Row))
			}
		}
	case journal.Erase:
		for _, p := range r.erasure.Positions {
			x.erase(&r.erasure, p)
		}
	}
	x.other(r, r.Body)
	return nil
}

func (x *sealing) other(r *record, body []byte) {
	x.others = append(x.others, archive.Other{Seq: r.Seq, Kind: string(r.Kind), More: r.More, Body: bytes.Clone(body)})
}

// put takes a version of a message; the one before leaves its place behind.
func (x *sealing) put(v sealed) {
	line := x.lines[v.Line]
	if line == nil {
		line = map[int64]sealed{}
		x.lines[v.Line] = line
	}
	if old, ok := line[v.Position]; ok {
		x.others = append(x.others, archive.Superseded(&old.Row))
	}
	line[v.Position] = v
}

// erase leaves the row of a message. Segments may have earlier versions.
func (x *sealing) erase(of *erasure, position int64) {
	line := of.Line
	if v, ok := x.lines[line][position]; ok {
		v.Gone, v.Size, v.Sum, v.Payloads = of.gone(), 0, 0, 0
		x.lines[line][position] = v
	}
	if of.Lost {
		return
	}
	if x.erased[line] == nil {
		x.erased[line] = map[int64]bool{}
	}
	x.erased[line][position] = true
}

// eraseFromSegments rewrites the segments that hold messages which a log erases, or cuts off a line.
func (x *sealing) eraseFromSegments(opts archive.Options) error {
	if len(x.erased)+len(x.cut) == 0 {
		return nil
	}
	var all *segments
	if err := x.ix.view(func(s *state) {
		all = s.segments
		all.hold()
	}); err != nil {
		return err
	}
	defer all.release()
	for _, o := range all.all {
		err := o.need()
		var holds bool
		if err == nil {
			holds, err = x.holds(o)
		}
		if err != nil {
			return err
		}
		if !holds {
			continue
		}
		state, err := o.State()
		if err == nil {
			err = x.ix.rewrite(o, opts, archive.Rewrite{Fate: x.fate}, state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *sealing) fate(r *archive.Row) archive.Fate {
	if end, ok := x.cut[r.Line]; ok && r.Position >= end {
		return archive.Remove
	}
	if x.erased[r.Line][r.Position] {
		return archive.Erase
	}
	return archive.Keep
}

// holds reports whether a segment has one of these messages.
func (x *sealing) holds(o *openSegment) (bool, error) {
	for line, end := range x.cut {
		if span, ok := o.spans[line]; ok && span.To > end {
			return true, nil
		}
	}
	for line, positions := range x.erased {
		span, ok := o.spans[line]
		if !ok {
			continue
		}
		for p := range positions {
			if p < span.From || p >= span.To {
				continue
			}
			row, err := o.Lookup(line, p)
			if err == nil && row.Gone != archive.Erased {
				return true, nil
			}
			if err != nil && !errors.Is(err, archive.ErrNotFound) {
				return false, err
			}
		}
	}
	return false, nil
}

// keepPayloads stores the payloads of a log elsewhere: a segment has none.
func (x *sealing) keepPayloads(o *openLog) error {
	if len(x.payloads) == 0 || x.ix.opts.Payloads == nil {
		return nil
	}
	return x.ix.opts.Payloads(func(yield func([]byte, error) bool) {
		for _, off := range x.payloads {
			body, err := o.ReadBody(off)
			var b []byte
			if err == nil {
				b, err = parsePayload(body)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	})
}

func (x *sealing) write(w *archive.Writer, read func(*sealed) ([]byte, error)) error {
	lines := make([]uuid.UUID, 0, len(x.lines))
	for id := range x.lines {
		lines = append(lines, id)
	}
	slices.SortFunc(lines, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range lines {
		all := make([]sealed, 0, len(x.lines[id]))
		for _, v := range x.lines[id] {
			all = append(all, v)
		}
		slices.SortFunc(all, func(a, b sealed) int { return cmp.Compare(a.Position, b.Position) })
		for i := range all {
			var b []byte
			if all[i].Gone == archive.Here {
				var err error
				if b, err = read(&all[i]); err != nil {
					return err
				}
			}
			if err := w.Add(all[i].Row, b); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(x.others, func(a, b archive.Other) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range x.others {
		if err := w.AddOther(x.others[i]); err != nil {
			return err
		}
	}
	return nil
}

// sealedAs takes a segment in the place of the oldest log, nil if that has no record, and removes the log.
func (ix *Index) sealedAs(o *openLog, seg *openSegment) error {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	if ix.state == nil || len(ix.state.logs) == 0 || ix.state.logs[0] != o {
		return ix.reload() // it was read anew meanwhile
	}
	ix.mu.Lock()
	s := ix.state
	if seg != nil {
		s.setSegments(append(slices.Clone(s.segments.all), seg))
		s.sealed(seg.To().Seq)
	}
	s.logs = slices.Clone(s.logs[1:])
	ix.mu.Unlock()
	o.release()
	if err := ix.dir.Logs.Remove(o.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
