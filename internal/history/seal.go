package history

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/segment"
	"github.com/google/uuid"
)

// Seal makes a segment of each log that ended, the oldest first, and removes the log. The caller holds the lock for that,
// which is not the one of writers.
//
// Crash order: payloads of the log are durable elsewhere, and messages that it erases, or cuts off, are gone from older
// segments, before it is sealed: until then its records have them, or say that they are gone. The segment is durable under its name before
// the log goes. Until the log is gone, both have the records, and the segment counts.
func (h *History) Seal(o segment.Options) error {
	for {
		h.advance.Lock()
		err := h.current()
		var log *openLog
		var state []byte
		if err == nil {
			log, state, err = h.sealable()
		}
		h.advance.Unlock()
		if err != nil || log == nil {
			return err
		}
		err = h.seal(log, state, o)
		log.release()
		if err != nil {
			return err
		}
	}
}

// current makes the segments those of the folder: another process may have sealed, merged or rewritten some. The caller
// holds the lock for sealing, so that none does now, and advance.
func (h *History) current() error {
	if err := h.refresh(); err != nil {
		return err
	}
	names, _, err := listSegments(h.dir.Segments)
	if err != nil {
		return err
	}
	all := h.state.segments.all
	if len(names) == len(all) && len(h.state.logs) > 0 && h.state.logs[0].IsThere() {
		same := true
		for i := range names {
			same = same && names[i] == all[i].name
		}
		if same {
			return nil
		}
	}
	return h.reload()
}

// sealable returns the oldest log, for one more user, and the state at its end, if the log that continues it is durable.
func (h *History) sealable() (o *openLog, state []byte, err error) {
	s := h.state
	if len(s.logs) < 2 || !s.logs[1].Begun() {
		return nil, nil, nil
	}
	o, state = s.logs[0], s.logs[1].State()
	if state == nil {
		return nil, nil, damaged("%s: its begin record", s.logs[1].Name())
	}
	o.hold()
	return o, state, nil
}

func (h *History) seal(o *openLog, state []byte, opts segment.Options) error {
	x := &sealing{h: h, lines: map[uuid.UUID]map[int64]sealed{}, erased: map[uuid.UUID]map[int64]bool{}, cut: map[uuid.UUID]int64{}}
	if err := x.read(o); err != nil {
		return err
	}
	if err := x.eraseFromSegments(opts); err != nil {
		return err
	}
	if err := x.keepPayloads(o); err != nil {
		return err
	}
	w, err := segment.Create(h.dir.Segments, h.dir.Context, opts)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := x.write(w, o); err != nil {
		return err
	}
	name, _, err := w.Commit(o.From(), o.At(), state)
	if err != nil {
		return err
	}
	return h.sealedAs(o, name)
}

// sealed is the newest version of a message that a log has.
type sealed struct {
	segment.Row
	off int64
}

type sealing struct {
	h        *History
	lines    map[uuid.UUID]map[int64]sealed
	erased   map[uuid.UUID]map[int64]bool // positions that older segments may have
	cut      map[uuid.UUID]int64          // where lines ended meanwhile: older segments may have messages from there on
	others   []segment.Other
	payloads []int64 // offsets
}

// read reads a log that ended.
func (x *sealing) read(o *openLog) error {
	l, err := journal.Open(x.h.dir.Logs, o.Name()) // the state reads on in the other one
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // it was only read
	from := &openLog{Log: l}
	tail, err := l.Read(nil, func(rec journal.Record) error {
		r := record{Record: rec, log: from}
		if err := r.parse(); err != nil {
			return err
		}
		return x.take(&r)
	}, nil)
	if err == nil && (tail != journal.Clean || l.At() != o.At()) {
		err = damaged("%s is not what it was", o.Name())
	}
	return err
}

func (x *sealing) take(r *record) error {
	switch r.Kind {
	case journal.Add, journal.Replace:
		a := &r.address
		x.put(sealed{segment.Row{
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
				x.others = append(x.others, segment.Superseded(&old.Row))
			}
		}
	case journal.Erase:
		for _, p := range r.erasure.Positions {
			x.erase(r.erasure.Line, p)
		}
	}
	x.other(r, r.Body)
	return nil
}

func (x *sealing) other(r *record, body []byte) {
	x.others = append(x.others, segment.Other{Seq: r.Seq, Kind: string(r.Kind), More: r.More, Body: bytes.Clone(body)})
}

// put takes a version of a message; the one before leaves its place behind.
func (x *sealing) put(v sealed) {
	line := x.lines[v.Line]
	if line == nil {
		line = map[int64]sealed{}
		x.lines[v.Line] = line
	}
	if old, ok := line[v.Position]; ok {
		x.others = append(x.others, segment.Superseded(&old.Row))
	}
	line[v.Position] = v
}

// erase leaves the row of a message. Segments may have earlier versions.
func (x *sealing) erase(line uuid.UUID, position int64) {
	if v, ok := x.lines[line][position]; ok {
		v.Gone, v.Size, v.Sum, v.Payloads = segment.Erased, 0, 0, 0
		x.lines[line][position] = v
	}
	if x.erased[line] == nil {
		x.erased[line] = map[int64]bool{}
	}
	x.erased[line][position] = true
}

// keepPayloads stores the payloads of a log elsewhere: a segment has none.
func (x *sealing) keepPayloads(o *openLog) error {
	if len(x.payloads) == 0 || x.h.opts.Payloads == nil {
		return nil
	}
	return x.h.opts.Payloads(func(yield func([]byte, error) bool) {
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

func (x *sealing) write(w *segment.Writer, o *openLog) error {
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
			if all[i].Gone == segment.Here {
				var err error
				if b, err = o.ReadBody(all[i].off); err != nil {
					return err
				}
			}
			if err := w.Add(all[i].Row, b); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(x.others, func(a, b segment.Other) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range x.others {
		if err := w.AddOther(x.others[i]); err != nil {
			return err
		}
	}
	return nil
}

// sealedAs takes a segment in the place of the oldest log, and removes that.
func (h *History) sealedAs(o *openLog, file string) error {
	seg, err := openSegmentIn(h.dir, file)
	if err != nil {
		return err
	}
	h.advance.Lock()
	defer h.advance.Unlock()
	if h.state == nil || len(h.state.logs) == 0 || h.state.logs[0] != o {
		seg.release()
		return h.reload() // it was read anew meanwhile
	}
	h.mu.Lock()
	s := h.state
	s.setSegments(append(slices.Clone(s.segments.all), seg))
	seg.release()
	s.sealed(seg.To().Seq)
	s.logs = slices.Clone(s.logs[1:])
	h.mu.Unlock()
	o.release()
	if err := h.dir.Logs.Remove(o.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setSegments makes these the segments. The caller holds mu.
func (s *state) setSegments(all []*openSegment) {
	next := newSegments()
	for _, o := range all {
		o.hold()
	}
	next.all = all
	was := s.segments
	s.segments = next
	was.release()
}
