package archive

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
)

// Fate says what becomes of a message in a rewrite.
type Fate int

// The fates.
const (
	Keep      Fate = iota
	Erase          // its row stays, without the message
	Remove         // nothing stays: its line ends before it
	Supersede      // another segment has a newer version: its place stays, see [Superseded]
)

// Rewrite says how segments become one.
type Rewrite struct {
	// Fate decides about each message; nil keeps all.
	Fate func(*Row) Fate
	// Rescue returns the envelope of a message whose frame is damaged, or nil if there is no other copy. The message is
	// then lost. Without Rescue, such a message makes Run fail, unless its frame is copied, and so do damaged rows.
	Rescue func(*Row) []byte
	// Other decides whether a record that is not a message stays; nil keeps all.
	Other func(*Other) bool
}

// Run adds to w what segments hold, in the order of the history. Of several versions of a message, the newest stays; the
// records of the others leave their places behind, see [Superseded]. Frames of which nothing changes are copied as they
// are, unless they are small, or stored while w compresses. Run holds at most one frame of each segment.
//
// The error wraps [ErrDamaged] if rows or other records cannot be read: nothing says then what is missing.
func (x *Rewrite) Run(w *Writer, in []*Segment) error {
	superseded, err := x.messages(w, in)
	if err != nil {
		return err
	}
	slices.SortFunc(superseded, func(a, b Other) int { return cmp.Compare(a.Seq, b.Seq) })
	if err := x.others(w, in, superseded); err != nil {
		return err
	}
	for i, s := range in {
		joints, err := s.Joints()
		if err != nil {
			return err
		}
		for _, j := range joints {
			w.AddJoint(j)
		}
		if i+1 < len(in) {
			w.AddJoint(s.To())
		}
	}
	return nil
}

func (x *Rewrite) others(w *Writer, in []*Segment, superseded []Other) error {
	put := func(o *Other) error {
		if x.Other != nil && !x.Other(o) {
			return nil
		}
		return w.AddOther(*o)
	}
	for _, s := range in {
		for o, err := range s.Others(0) {
			if err != nil {
				return err
			}
			for len(superseded) > 0 && superseded[0].Seq < o.Seq {
				if err := put(&superseded[0]); err != nil {
					return err
				}
				superseded = superseded[1:]
			}
			if err := put(&o); err != nil {
				return err
			}
		}
	}
	for i := range superseded {
		if err := put(&superseded[i]); err != nil {
			return err
		}
	}
	return nil
}

// KindSuperseded is the kind of the [Other] that stands for a version of a message which a later record replaced.
const KindSuperseded = "superseded"

// KindForgotten is the kind of the [Other] that stands for a record of which only the number is left.
const KindForgotten = "forgotten"

// superseded is what is left of a version of a message.
type superseded struct {
	Line     uuid.UUID `json:"line"`
	Position int64     `json:"position"`
	ID       uuid.UUID `json:"id"`
	StoredAt int64     `json:"stored_at"`
	Size     int64     `json:"size"`
	Replaces bool      `json:"replaces,omitempty"`
	Was      int64     `json:"was,omitempty"`
}

// Superseded returns what is left of a version of a message.
func Superseded(r *Row) Other {
	b, err := json.Marshal(superseded{r.Line, r.Position, r.ID, r.At, r.Size, r.Replaces, r.Was})
	if err != nil {
		panic(err) // it has no such type
	}
	return Other{Seq: r.Seq, Kind: KindSuperseded, More: r.More, Body: b}
}

// ParseSuperseded returns what a record of [KindSuperseded] says of a message. The row has no place and no sum.
func ParseSuperseded(o *Other) (Row, error) {
	var x superseded
	if err := json.Unmarshal(o.Body, &x); err != nil || x.Position < 0 || x.Size < 0 || x.Was < 0 {
		return Row{}, damaged("record %d: invalid row of a replaced message", o.Seq)
	}
	return Row{
		Line: x.Line, Position: x.Position, ID: x.ID, Seq: o.Seq, At: x.StoredAt, Size: x.Size, Replaces: x.Replaces, Was: x.Was, More: o.More,
		Gone: Lost,
	}, nil
}

// cursor reads the messages of a segment in order.
type cursor struct {
	s     *Segment
	n     int64 // the block
	block *blockRows
	i     int // the row in it
	frame *frame
	fault error // of the frame
}

// ended reports whether there is no further row.
func (c *cursor) ended() bool { return c.block == nil }

func (c *cursor) row() *Row { return &c.block.rows[c.i] }

func (c *cursor) lastRow() *Row { return &c.block.rows[len(c.block.rows)-1] }

// open begins a block.
func (c *cursor) open(n int64) (err error) {
	if c.frame != nil {
		c.frame.release()
	}
	c.n, c.i, c.block, c.frame, c.fault = n, 0, nil, nil, nil
	if n < c.s.tables[directory].count {
		if c.block, err = c.s.blockRows(n); err != nil {
			return c.s.wrap(err)
		}
	}
	return nil
}

func (c *cursor) next() error {
	if c.i++; c.i < len(c.block.rows) {
		return nil
	}
	return c.open(c.n + 1)
}

// envelope returns the message of the row, which is valid until the next block, or nil if it is damaged.
func (c *cursor) envelope() ([]byte, error) {
	if c.frame == nil && c.fault == nil {
		c.frame, c.fault = c.s.frame(c.n, &c.block.block)
		if c.fault != nil && !isDamage(c.fault) {
			return nil, c.fault
		}
	}
	if c.fault != nil {
		return nil, nil
	}
	b, err := envelope(c.row(), c.frame.content)
	if err != nil {
		return nil, nil //nolint:nilerr // it is damaged
	}
	return b, nil
}

func (x *Rewrite) messages(w *Writer, in []*Segment) (superseded []Other, err error) {
	cursors := make([]*cursor, len(in))
	defer func() {
		for _, c := range cursors {
			if c != nil && c.frame != nil {
				c.frame.release()
			}
		}
	}()
	for i, s := range in {
		cursors[i] = &cursor{s: s}
		if err := cursors[i].open(0); err != nil {
			return nil, err
		}
	}
	for {
		c, second := first(cursors)
		if c == nil {
			return superseded, nil
		}
		if c.block.remade && x.Rescue == nil {
			return nil, c.s.wrap(damaged("rows of block %d", c.n))
		}
		if c.i == 0 && (second == nil || c.lastRow().compare(second.Line, second.Position) < 0) && x.keepsAll(w, c) {
			if err := w.copyBlock(c); err != nil {
				return nil, err
			}
			if err := c.open(c.n + 1); err != nil {
				return nil, err
			}
			continue
		}
		at := *c.row()
		for _, older := range cursors {
			if older != c && !older.ended() && older.row().compare(at.Line, at.Position) == 0 {
				superseded = append(superseded, Superseded(older.row()))
				if err := older.next(); err != nil {
					return nil, err
				}
			}
		}
		if x.Fate != nil && x.Fate(&at) == Supersede {
			superseded = append(superseded, Superseded(&at))
		} else if err := x.message(w, c); err != nil {
			return nil, err
		}
		if err := c.next(); err != nil {
			return nil, err
		}
	}
}

// first returns the cursor with the first row, of several with the same message the last one, and the first row of the
// others.
func first(cursors []*cursor) (c *cursor, second *Row) {
	for _, x := range cursors {
		if x.ended() {
			continue
		}
		if c == nil || x.row().compare(c.row().Line, c.row().Position) <= 0 {
			c = x
		}
	}
	for _, x := range cursors {
		if x != c && !x.ended() && (second == nil || x.row().compare(second.Line, second.Position) < 0) {
			second = x.row()
		}
	}
	return c, second
}

// keepsAll reports whether a block can be copied as it is.
func (x *Rewrite) keepsAll(w *Writer, c *cursor) bool {
	b := &c.block.block
	if b.packed == 0 || b.content < int64(w.limit)/2 || isStored(b.packed, b.content) && w.with.zstd != nil {
		return false
	}
	if x.Fate != nil && slices.ContainsFunc(c.block.rows, func(r Row) bool { return x.Fate(&r) != Keep }) {
		return false
	}
	if x.Rescue == nil {
		return true
	}
	lost, err := c.s.verifyBlock(c.n, b, c.block.rows)
	return err == nil && len(lost) == 0
}

func (x *Rewrite) message(w *Writer, c *cursor) error {
	r := *c.row()
	fate := Keep
	if x.Fate != nil {
		fate = x.Fate(&r)
	}
	switch {
	case fate == Remove:
		return nil
	case fate == Erase:
		r.Gone = Erased
	case r.Gone != Here:
	default:
		b, err := c.envelope()
		if err != nil {
			return err
		}
		if b == nil && x.Rescue == nil {
			return c.s.wrap(damaged("message %s", r.ID))
		}
		if b == nil {
			b = x.Rescue(&r)
		}
		if b != nil {
			return w.Add(r, b)
		}
		r.Gone = Lost
	}
	return w.Add(r, nil)
}

// copyBlock adds a whole block, and does not look into its frame.
func (w *Writer) copyBlock(c *cursor) error {
	if err := w.endBlock(); err != nil {
		return err
	}
	b := &c.block.block
	if len(w.ids)+len(c.block.rows) > MaxCount {
		return ErrFull
	}
	packed := slices.Grow(w.out[:0], int(b.packed))[:b.packed] // at most maxFrame, and within the file
	if err := readAt(c.s.file, packed, b.offset); err != nil {
		return err
	}
	var rows []byte
	var prev *Row
	for i := range c.block.rows {
		r := &c.block.rows[i]
		rows = appendRow(rows, r, prev)
		w.addRow(r)
		prev = r
	}
	w.out, w.last = packed, *prev
	return w.writeBlock(block{line: b.line, position: b.position, first: w.first, content: b.content}, rows)
}
