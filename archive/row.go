package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Place locates a message in the pack that returned it. It has no meaning for other packs.
type Place struct {
	segment uint32
	offset  uint32 // of the envelope in the decoded frame
}

// Row is the index entry of one message.
type Row struct {
	Line     uuid.UUID
	Position int64
	ID       uuid.UUID
	File     uuid.UUID // the name of its message file if it is not ID, else uuid.Nil
	Size     int64     // of the envelope, in bytes, without the newline
	Sum      uint64    // of the envelope: message.Sum
	At       int64     // stored_at, nanoseconds since 1970
	Payloads int       // references to blobs in the message
	Place
}

// StoredAt returns the time of the commit, which is also the time of the message's file.
func (r *Row) StoredAt() time.Time { return time.Unix(0, r.At) }

// FileID returns the name of the message's file without its suffix.
func (r *Row) FileID() uuid.UUID {
	if r.File != uuid.Nil {
		return r.File
	}
	return r.ID
}

// compare orders messages as in a pack: by line, then by position.
func (r *Row) compare(line uuid.UUID, position int64) int {
	if c := bytes.Compare(r.Line[:], line[:]); c != 0 {
		return c
	}
	return cmp.Compare(r.Position, position)
}

// rowOf describes an envelope. It checks that b is an envelope on one line.
func rowOf(b []byte) (Row, error) {
	e, err := message.Parse(b)
	if err != nil {
		return Row{}, err
	}
	r := Row{
		Line: e.Line, Position: e.Position, ID: e.ID,
		Size: int64(len(b)), Sum: message.Sum(b), At: e.StoredAt.UnixNano(),
		Payloads: max(e.Payloads, blob.Count(b)), // an edit by hand may omit the count
	}
	if e.File != e.ID {
		r.File = e.File
	}
	return r, nil
}

// Flags for a row's optional parts. The common row, next on its line and without references, has none.
const (
	rowJumps    = 1 << iota // line and position: the row does not follow the previous one
	rowFile                 // the file's id
	rowPayloads             // the number of payloads
	rowNanos                // a time that is not a whole number of microseconds
	rowFlags    = 1<<iota - 1
)

// appendRow appends a row. prev is the previous row of the segment, or nil.
func appendRow(b []byte, r, prev *Row) []byte {
	var flags byte
	var before int64
	if prev == nil || prev.Line != r.Line || prev.Position+1 != r.Position {
		flags |= rowJumps
	}
	if prev != nil {
		before = prev.At
	}
	if r.File != uuid.Nil {
		flags |= rowFile
	}
	if r.Payloads != 0 {
		flags |= rowPayloads
	}
	unit := int64(time.Microsecond)
	if (r.At-before)%unit != 0 {
		flags |= rowNanos
		unit = 1
	}
	b = append(b, flags)
	if flags&rowJumps != 0 {
		b = append(b, r.Line[:]...)
		b = binary.AppendUvarint(b, uint64(r.Position))
	}
	b = append(b, r.ID[:]...)
	b = binary.AppendVarint(b, (r.At-before)/unit)
	if flags&rowFile != 0 {
		b = append(b, r.File[:]...)
	}
	if flags&rowPayloads != 0 {
		b = binary.AppendUvarint(b, uint64(r.Payloads))
	}
	b = binary.AppendUvarint(b, uint64(r.Size))
	return binary.LittleEndian.AppendUint64(b, r.Sum)
}

// leastRow is the length of the shortest row.
const leastRow = 1 + 16 + 1 + 1 + 8

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

// step reads the difference of two times.
func (d *rowReader) step(unit int64) int64 {
	v, n := binary.Varint(d.b)
	if !d.ok || n <= 0 || v > math.MaxInt64/unit || v < math.MinInt64/unit {
		d.ok = false
		return 0
	}
	d.b = d.b[n:]
	return v * unit
}

// next reads a row into r, which is empty. prev is the previous row, or nil.
func (d *rowReader) next(r, prev *Row) {
	flags := d.take(1)[0]
	switch {
	case flags&^rowFlags != 0 || flags&rowJumps == 0 && prev == nil:
		d.ok = false
	case flags&rowJumps != 0:
		copy(r.Line[:], d.take(len(r.Line)))
		r.Position = d.uvarint(math.MaxInt64 - 1)
		d.ok = d.ok && (prev == nil || prev.compare(r.Line, r.Position) < 0)
	default:
		r.Line, r.Position = prev.Line, prev.Position+1
		d.ok = d.ok && r.Position > 0
	}
	copy(r.ID[:], d.take(len(r.ID)))
	unit := int64(time.Microsecond)
	if flags&rowNanos != 0 {
		unit = 1
	}
	r.At = d.step(unit)
	if prev != nil {
		r.At += prev.At
	}
	if flags&rowFile != 0 {
		copy(r.File[:], d.take(len(r.File)))
	}
	if flags&rowPayloads != 0 {
		r.Payloads = int(d.uvarint(math.MaxInt32))
	}
	r.offset = uint32(d.content)
	r.Size = d.uvarint(MaxMessage)
	r.Sum = binary.LittleEndian.Uint64(d.take(8))
	d.content += r.Size + 1
	d.ok = d.ok && d.content <= math.MaxUint32
}

// parseRows reads the count rows of a segment. content is the length of their envelopes and newlines.
func parseRows(b []byte, segment uint32, count int64) (rows []Row, content int64, err error) {
	d := rowReader{b: b, ok: true}
	rows = make([]Row, 0, min(count, int64(len(b)/leastRow)))
	var prev *Row
	for len(d.b) > 0 {
		rows = append(rows, Row{Place: Place{segment: segment}})
		r := &rows[len(rows)-1]
		if d.next(r, prev); !d.ok {
			return nil, 0, damaged("row %d of segment %d cannot be read", len(rows)-1, segment)
		}
		prev = r
	}
	return rows, d.content, nil
}

// linesOf makes the rows of a frame's messages from their envelopes. It skips lines that are not envelopes.
func linesOf(content []byte, segment uint32) (rows []Row) {
	for off := 0; off < len(content); {
		n := bytes.IndexByte(content[off:], '\n')
		if n < 0 {
			break
		}
		if r, err := rowOf(content[off : off+n]); err == nil {
			r.Place = Place{segment, uint32(off)}
			rows = append(rows, r)
		}
		off += n + 1
	}
	return rows
}
