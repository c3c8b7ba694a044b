package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

const (
	// rowsSize is the number of bytes of rows that ends a block, however small its content.
	rowsSize = 256 << 10
	// maxRows is the greatest length of the frame of a block's rows.
	maxRows = skipHead + sumSize + rowsSize + 256 + sumSize
)

// Place locates a message in the segment that returned it. It has no meaning for other segments.
type Place struct {
	block  uint32
	offset uint32 // of the envelope in the decoded frame
}

// Gone says why a row has no message.
type Gone byte

// The values of Gone.
const (
	Here   Gone = iota // it has one
	Erased             // it was erased on purpose
	Lost               // no copy of it was whole
	goneEnd
)

// Row describes a message, and the record that committed it.
type Row struct {
	Line     uuid.UUID
	Position int64
	Seq      uint64 // of the record
	ID       uuid.UUID
	At       int64  // stored_at, microseconds since 1970
	Size     int64  // of the envelope, in bytes, without the newline; 0 if it is gone
	Sum      uint64 // of the envelope: message.Sum; 0 if it is gone
	Payloads int    // references to blobs in the message
	Replaces bool   // the record replaced an earlier version
	Was      int64  // of a record that did: the size of that version
	More     bool   // the commit continues with the next record
	Gone     Gone
	Place
}

// StoredAt returns the time of the commit.
func (r *Row) StoredAt() time.Time { return time.UnixMicro(r.At) }

// compare orders messages as in a segment: by line, then by position.
func (r *Row) compare(line uuid.UUID, position int64) int {
	if c := bytes.Compare(r.Line[:], line[:]); c != 0 {
		return c
	}
	return cmp.Compare(r.Position, position)
}

// follows reports whether r may come after prev in a segment.
func (r *Row) follows(prev *Row) bool { return prev == nil || prev.compare(r.Line, r.Position) < 0 }

// Flags of a row. The common row is the next message on its line, without references and of a commit of its own.
const (
	rowJumps    = 1 << iota // line and position: the row does not follow the previous one
	rowPayloads             // the number of payloads
	rowReplaces             // the size of the version before
	rowMore
	rowGone  // why the message is gone, in place of its size and sum
	rowFlags = 1<<iota - 1
)

// appendRow appends a row. prev is the previous row of the block, or nil.
func appendRow(b []byte, r, prev *Row) []byte {
	var flags byte
	var before Row
	if prev != nil {
		before = *prev
	}
	for _, f := range []struct {
		flag byte
		set  bool
	}{
		{rowJumps, prev == nil || prev.Line != r.Line || prev.Position+1 != r.Position},
		{rowPayloads, r.Payloads != 0}, {rowReplaces, r.Replaces}, {rowMore, r.More}, {rowGone, r.Gone != Here},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	b = append(b, flags)
	if flags&rowJumps != 0 {
		b = append(b, r.Line[:]...)
		b = binary.AppendUvarint(b, uint64(r.Position))
	}
	b = append(b, r.ID[:]...)
	b = binary.AppendVarint(b, int64(r.Seq-before.Seq))
	b = binary.AppendVarint(b, r.At-before.At)
	if flags&rowPayloads != 0 {
		b = binary.AppendUvarint(b, uint64(r.Payloads))
	}
	if flags&rowReplaces != 0 {
		b = binary.AppendUvarint(b, uint64(r.Was))
	}
	if flags&rowGone != 0 {
		return append(b, byte(r.Gone))
	}
	b = binary.AppendUvarint(b, uint64(r.Size))
	return binary.LittleEndian.AppendUint64(b, r.Sum)
}

// leastRow is the length of the shortest row.
const leastRow = 1 + 16 + 1 + 1 + 1

// rowReader reads rows in sequence. Unreadable input clears ok.
type rowReader struct {
	b       []byte
	ok      bool
	content int64 // bytes of the frame so far
}

func (d *rowReader) take(n int) []byte {
	if !d.ok || len(d.b) < n {
		d.ok = false
		return make([]byte, n) // n is at most 16
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *rowReader) uvarint(most int64) int64 {
	v, n := binary.Uvarint(d.b)
	if !d.ok || n <= 0 || v > uint64(most) {
		d.ok = false
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

// step reads a number as its difference to the one before, which is not negative. Nor is the number.
func (d *rowReader) step(before int64) int64 {
	v, n := binary.Varint(d.b)
	if !d.ok || n <= 0 || v > 0 && v > math.MaxInt64-before || before+v < 0 {
		d.ok = false
		return 0
	}
	d.b = d.b[n:]
	return before + v
}

// next reads a row into r, which is empty. prev is the previous row, or nil.
func (d *rowReader) next(r, prev *Row) {
	flags := d.take(1)[0]
	var before Row
	if prev != nil {
		before = *prev
	}
	switch {
	case flags&^rowFlags != 0 || flags&rowJumps == 0 && prev == nil:
		d.ok = false
	case flags&rowJumps != 0:
		copy(r.Line[:], d.take(len(r.Line)))
		r.Position = d.uvarint(math.MaxInt64 - 1)
		d.ok = d.ok && r.follows(prev)
	default:
		r.Line, r.Position = prev.Line, prev.Position+1
		d.ok = d.ok && r.Position > 0
	}
	copy(r.ID[:], d.take(len(r.ID)))
	r.Seq = uint64(d.step(int64(before.Seq)))
	r.At = d.step(before.At)
	r.Replaces, r.More = flags&rowReplaces != 0, flags&rowMore != 0
	if flags&rowPayloads != 0 {
		r.Payloads = int(d.uvarint(math.MaxInt32))
	}
	if r.Replaces {
		r.Was = d.uvarint(MaxMessage)
	}
	r.offset = uint32(d.content)
	if flags&rowGone != 0 {
		r.Gone = Gone(d.take(1)[0])
		d.ok = d.ok && r.Gone != Here && r.Gone < goneEnd
		return
	}
	r.Size = d.uvarint(MaxMessage)
	r.Sum = binary.LittleEndian.Uint64(d.take(8))
	d.content += r.Size + 1
	d.ok = d.ok && d.content <= math.MaxUint32
}

// parseRows reads the rows of a block. content is the length of their envelopes and newlines.
func parseRows(b []byte, block uint32, count int64) (rows []Row, content int64, err error) {
	d := rowReader{b: b, ok: true}
	rows = make([]Row, 0, min(count, int64(len(b)/leastRow)))
	var prev *Row
	for len(d.b) > 0 {
		rows = append(rows, Row{Place: Place{block: block}})
		r := &rows[len(rows)-1]
		if d.next(r, prev); !d.ok {
			return nil, 0, damaged("row %d of block %d cannot be read", len(rows)-1, block)
		}
		prev = r
	}
	return rows, d.content, nil
}

// parseRowsFrame reads the frame with the rows of a block: the sum of the message frame, and the rows.
func parseRowsFrame(b []byte, block uint32, count int64) (rows []Row, sum uint64, content int64, err error) {
	if !isSkip(b, kindRows) || len(b) < skipHead+2*sumSize {
		return nil, 0, 0, damaged("rows of block %d", block)
	}
	sum = le.Uint64(b[skipHead:])
	rows, content, err = parseRows(b[skipHead+sumSize:len(b)-sumSize], block, count)
	return rows, sum, content, err
}

// linesOf makes the rows of a frame's messages from their envelopes, without what only the records said. It skips lines
// that are not envelopes.
func linesOf(content []byte, block uint32) (rows []Row) {
	for off := 0; off < len(content); {
		n := bytes.IndexByte(content[off:], '\n')
		if n < 0 {
			break
		}
		if e, err := message.Parse(content[off : off+n]); err == nil {
			rows = append(rows, Row{
				Line: e.Line, Position: e.Position, ID: e.ID, At: e.StoredAt.UnixMicro(), Size: int64(n), Sum: message.Sum(content[off : off+n]),
				Payloads: e.Payloads, Place: Place{block, uint32(off)},
			})
		}
		off += n + 1
	}
	return rows
}

// envelope returns a row's envelope from its frame.
func envelope(r *Row, content []byte) ([]byte, error) {
	from, to := int64(r.offset), int64(r.offset)+r.Size
	if r.Gone != Here || r.Size < 0 || to >= int64(len(content)) || content[to] != '\n' || message.Sum(content[from:to]) != r.Sum {
		return nil, damaged("position %d of line %s differs from what was written", r.Position, r.Line)
	}
	return content[from:to:to], nil
}
