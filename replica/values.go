package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// codes are the errors that callers distinguish, by their numbers in the protocol, from 1 on.
var codes = []error{
	ctxdir.ErrNotExist, ctxdir.ErrExist, ctxdir.ErrInvalid, ctxdir.ErrConflict, ctxdir.ErrPosition, ctxdir.ErrShared,
	ctxdir.ErrLocked, ctxdir.ErrReadOnly, ctxdir.ErrDamaged, ctxdir.ErrErased, ctxdir.ErrUnexamined, ctxdir.ErrDurability,
	ctxdir.ErrTooLarge, ctxdir.ErrFormat,
}

// remoteError is an error of the peer.
type remoteError struct {
	text string
	kind error // one of codes, or nil
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

func (e *encoder) error(err error) {
	if err == nil {
		e.number(0)
		return
	}
	code := len(codes) + 1
	for i, c := range codes {
		if errors.Is(err, c) {
			code = i + 1
			break
		}
	}
	text := err.Error()
	e.number(uint64(code))
	e.text(text[:min(len(text), 1000)])
}

func (d *decoder) error() error {
	code := d.number()
	if code == 0 {
		return nil
	}
	e := &remoteError{text: d.text()}
	if code <= uint64(len(codes)) {
		e.kind = codes[code-1]
	}
	return e
}

func (e *encoder) state(s *State) {
	e.id(s.ID)
	e.text(s.Commit)
}

func (d *decoder) state() State { return State{ID: d.id(), Commit: d.text()} }

func (e *encoder) headRequest(r *HeadRequest) {
	e.id(r.ID)
	e.text(r.Since)
}

func (d *decoder) headRequest() HeadRequest { return HeadRequest{ID: d.id(), Since: d.text()} }

func (e *encoder) head(h *Head) {
	e.error(h.Err)
	if h.Err != nil {
		return
	}
	e.text(h.Commit)
	e.number(h.Sequence)
	e.flags(h.Continues)
	e.meta(&h.Meta)
	encodeList(e, h.Branches, e.branch)
	rows := make([]Row, len(h.Changed))
	for i, r := range h.Changed {
		rows[i].Row = r
	}
	e.rows(rows)
}

func (d *decoder) head() (h Head) {
	if h.Err = d.error(); h.Err != nil {
		return h
	}
	h.Commit, h.Sequence = d.text(), d.number()
	d.flags(&h.Continues)
	h.Meta = d.meta()
	h.Branches = list(d, d.branch)
	for _, r := range d.rows() {
		h.Changed = append(h.Changed, r.Row)
	}
	return h
}

func (e *encoder) branch(b *Branch) {
	e.text(b.Name)
	encodeList(e, b.Lines, func(s *ctxdir.Span) {
		e.id(s.Line)
		e.number(uint64(s.End))
	})
}

func (d *decoder) branch() Branch {
	b := Branch{Name: d.text(), Lines: list(d, func() ctxdir.Span { return ctxdir.Span{Line: d.id(), End: d.position()} })}
	return b
}

// rows writes rows: a line only where it differs from that of the row before, and positions as differences.
func (e *encoder) rows(rows []Row) {
	var line uuid.UUID
	next := int64(0)
	encodeList(e, rows, func(r *Row) {
		e.flags(r.Line != line, r.Gone, r.Erased, r.Sum != 0)
		if r.Line != line {
			line = r.Line
			e.id(line)
		}
		e.integer(r.Position - next)
		next = r.Position + 1
		e.id(r.ID)
		e.time(r.StoredAt)
		if r.Sum != 0 {
			e.sum(r.Sum)
		}
	})
}

func (d *decoder) rows() []Row {
	var line uuid.UUID
	next := int64(0)
	return list(d, func() (r Row) {
		var other, sum bool
		d.flags(&other, &r.Gone, &r.Erased, &sum)
		if other {
			line = d.id()
		}
		r.Line = line
		if r.Position = next + d.integer(); r.Position < 0 || r.Position > maxPosition {
			d.invalid("%d is no position", r.Position)
		}
		next = r.Position + 1
		r.ID, r.StoredAt = d.id(), d.time()
		if sum {
			r.Sum = d.sum()
		}
		return r
	})
}

func (e *encoder) ranges(of *Range) {
	e.id(of.ID)
	e.id(of.Line)
	e.number(uint64(of.From))
	e.number(uint64(of.To))
	e.flags(of.Sums)
}

func (d *decoder) ranges() Range {
	r := Range{ID: d.id(), Line: d.id(), From: d.position(), To: d.position()}
	d.flags(&r.Sums)
	return r
}

func (e *encoder) message(m *Message) {
	e.number(uint64(m.Of))
	e.number(uint64(m.Position))
	e.id(m.ID)
	e.flags(m.Erased)
	e.bytes(m.Envelope)
	encodeList(e, m.Payloads, func(s *string) { e.text(*s) })
}

func (d *decoder) message() Message {
	m := Message{Of: int(d.position()), Position: d.position(), ID: d.id()}
	d.flags(&m.Erased)
	m.Envelope = d.bytes(maxEnvelope)
	m.Payloads = list(d, d.payloadSum)
	return m
}

// payloadSum reads the sum of a payload: it becomes a part of paths.
func (d *decoder) payloadSum() string {
	s := d.text()
	if d.err == nil && !isSum(s) {
		d.invalid("%q is no SHA-256", s)
	}
	return s
}

func isSum(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func (e *encoder) payloadOf(p *PayloadOf) {
	e.text(p.Sum)
	e.id(p.ID)
	e.id(p.Line)
	e.id(p.Message)
}

func (d *decoder) payloadOf() PayloadOf {
	return PayloadOf{Sum: d.payloadSum(), ID: d.id(), Line: d.id(), Message: d.id()}
}

func (e *encoder) change(c *Change) {
	e.id(c.ID)
	e.flags(c.Create != nil, c.Sequence != nil, c.Remove)
	if c.Create != nil {
		e.meta(c.Create)
	}
	if c.Sequence != nil {
		e.number(*c.Sequence)
	}
	encodeList(e, c.Ops, e.op)
	encodeList(e, c.Erase, func(id *uuid.UUID) { e.id(*id) })
}

func (d *decoder) change() Change {
	c := Change{ID: d.id()}
	var create, sequence bool
	d.flags(&create, &sequence, &c.Remove)
	if create {
		m := d.meta()
		c.Create = &m
	}
	if sequence {
		n := d.number()
		c.Sequence = &n
	}
	c.Ops = list(d, d.op)
	c.Erase = list(d, d.id)
	return c
}

// kinds are the kinds of operations, by their numbers in the protocol.
var kinds = []OpKind{OpRename, OpNew, OpFork, OpRewind, OpRemove, OpAppend, OpReplace, OpMetadata}

func (e *encoder) op(o *Op) {
	for i, k := range kinds {
		if k == o.Kind {
			e.number(uint64(i))
		}
	}
	e.text(o.Branch)
	e.text(o.To)
	e.text(o.From)
	e.number(uint64(o.N))
	encodeList(e, o.Messages, e.message)
	if o.Kind == OpMetadata {
		e.meta(o.Meta)
	}
}

func (d *decoder) op() (o Op) {
	if k := d.number(); k < uint64(len(kinds)) {
		o.Kind = kinds[k]
	} else {
		d.invalid("operation %d", k)
	}
	o.Branch, o.To, o.From, o.N = d.text(), d.text(), d.text(), d.position()
	o.Messages = list(d, d.message)
	if o.Kind == OpMetadata && d.err == nil {
		m := d.meta()
		o.Meta = &m
	}
	return o
}

func (e *encoder) result(r *Result) {
	e.error(r.Err)
	e.text(r.Commit)
	e.number(r.Sequence)
	encodeList(e, r.Branches, e.branch)
}

func (d *decoder) result() Result {
	return Result{Err: d.error(), Commit: d.text(), Sequence: d.number(), Branches: list(d, d.branch)}
}

func (e *encoder) digest(x *Digest) {
	e.error(x.Err)
	if x.Err == nil {
		e.number(x.Sequence)
		e.number(uint64(x.Messages))
		e.write(x.Sum[:])
	}
}

func (d *decoder) digest() (x Digest) {
	if x.Err = d.error(); x.Err == nil {
		x.Sequence, x.Messages = d.number(), d.position()
		d.full(x.Sum[:])
	}
	return x
}

// meta writes metadata as JSON. Values are kept byte for byte but for white space.
func (e *encoder) meta(m *Meta) {
	var w bytes.Buffer
	to := json.NewEncoder(&w)
	to.SetEscapeHTML(false)
	err := to.Encode(m)
	if err != nil {
		e.err = firstOf(e.err, err)
		return
	}
	e.bytes(w.Bytes())
}

func (d *decoder) meta() (m Meta) {
	b := d.bytes(maxMetadata)
	if d.err != nil {
		return m
	}
	if err := json.Unmarshal(b, &m); err != nil {
		d.fail(fmt.Errorf("%w: metadata: %w: %w", errProtocol, ctxdir.ErrInvalid, err))
	}
	return m
}
