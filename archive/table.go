package archive

import (
	"bytes"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// A table holds entries of one width, in pages. A page has a head, a number of entries, and the sum of both. The last
// page is as long as its entries need. Numbers are little endian.
type table struct {
	at    int64 // offset in the file
	count int64 // of its entries
	shape *shape
}

type shape struct {
	width int64 // of an entry
	each  int64 // entries of a page
	head  int64 // bytes of a page before its entries
}

// The tables, in their order in the file.
const (
	directory = iota
	ids
	spans
	joints
	others
	tableCount
)

var shapes = [tableCount]shape{
	directory: {width: 16 + 8 + 4 + 8 + 4 + 4 + 4, each: 64},
	ids:       {width: 2 + 3, each: 512, head: int64(len(uuid.UUID{}))},
	spans:     {width: 16 + 8 + 8 + 16 + 16, each: 64},
	joints:    {width: 8 + 8, each: 128},
	others:    {width: 8 + 8 + 4 + 4, each: 64},
}

func (t *table) pages() int64 { return (t.count + t.shape.each - 1) / t.shape.each }

// size returns the length of the table in bytes.
func (t *table) size() int64 { return t.count*t.shape.width + t.pages()*(t.shape.head+sumSize) }

// page returns the offset, length and number of entries of a page.
func (t *table) page(n int64) (at, size, entries int64) {
	s := t.shape
	entries = min(s.each, t.count-n*s.each)
	return t.at + n*(s.head+s.each*s.width+sumSize), s.head + entries*s.width + sumSize, entries
}

// block is an entry of the directory. It locates a message frame and its rows.
type block struct {
	line     uuid.UUID // of the first row
	position int64
	first    int64 // number of rows in the blocks before it
	offset   int64 // of the frame; its rows follow
	packed   int64 // length of the frame; 0 if all its messages are gone
	content  int64 // length of the decoded content
	rows     int64 // length of the skippable frame with the rows
}

func (s *block) append(b []byte) []byte {
	b = append(b, s.line[:]...)
	b = le.AppendUint64(b, uint64(s.position))
	b = le.AppendUint32(b, uint32(s.first))
	b = le.AppendUint64(b, uint64(s.offset))
	b = le.AppendUint32(b, uint32(s.packed))
	b = le.AppendUint32(b, uint32(s.content))
	return le.AppendUint32(b, uint32(s.rows))
}

func parseBlock(b []byte) (s block) {
	copy(s.line[:], b)
	s.position = int64(le.Uint64(b[16:]))
	s.first = int64(le.Uint32(b[24:]))
	s.offset = int64(le.Uint64(b[28:]))
	s.packed = int64(le.Uint32(b[36:]))
	s.content = int64(le.Uint32(b[40:]))
	s.rows = int64(le.Uint32(b[44:]))
	return s
}

// end returns the offset after the block.
func (s *block) end() int64 { return s.offset + s.packed + s.rows }

// sane reports whether a block fits before limit.
func (s *block) sane(limit int64) bool {
	return s.position >= 0 && s.offset >= 0 && s.offset <= limit && s.end() <= limit &&
		s.packed <= maxFrame && s.content <= MaxMessage+1 && s.rows <= maxRows
}

// An entry of the id table is the end of an id (2 bytes) and the number of its row (3 bytes). Entries are sorted by id;
// a page begins with its first id. Ids find a page, tags find an entry, and only then does a look-up read a row.
func appendIDEntry(b []byte, id *uuid.UUID, row uint32) []byte {
	return append(b, id[14], id[15], byte(row), byte(row>>8), byte(row>>16))
}

func parseIDEntry(b []byte) (tag [2]byte, row int64) {
	return [2]byte(b), int64(b[2]) | int64(b[3])<<8 | int64(b[4])<<16
}

// Span is what a segment has of a line: messages at some of the positions [From, To), with ids from Least to Greatest.
type Span struct {
	Line            uuid.UUID
	From, To        int64
	Least, Greatest uuid.UUID
}

// add extends the span by the next message of the line.
func (s *Span) add(r *Row) {
	s.To = r.Position + 1
	if bytes.Compare(r.ID[:], s.Least[:]) < 0 {
		s.Least = r.ID
	}
	if bytes.Compare(r.ID[:], s.Greatest[:]) > 0 {
		s.Greatest = r.ID
	}
}

func (s *Span) append(b []byte) []byte {
	b = append(b, s.Line[:]...)
	b = le.AppendUint64(le.AppendUint64(b, uint64(s.From)), uint64(s.To))
	return append(append(b, s.Least[:]...), s.Greatest[:]...)
}

func parseSpan(b []byte) (s Span) {
	copy(s.Line[:], b)
	s.From, s.To = int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:]))
	copy(s.Least[:], b[32:])
	copy(s.Greatest[:], b[48:])
	return s
}

func appendPosition(b []byte, s journal.Position) []byte {
	return le.AppendUint64(le.AppendUint64(b, s.Seq), s.Chain)
}

func parsePosition(b []byte) journal.Position {
	return journal.Position{Seq: le.Uint64(b), Chain: le.Uint64(b[8:])}
}

// otherFrame locates a frame of records that are not messages.
type otherFrame struct {
	seq     uint64 // of its first record
	offset  int64
	length  int64
	content int64 // length of the decoded content
}

func (o *otherFrame) append(b []byte) []byte {
	b = le.AppendUint64(le.AppendUint64(b, o.seq), uint64(o.offset))
	return le.AppendUint32(le.AppendUint32(b, uint32(o.length)), uint32(o.content))
}

func parseOther(b []byte) otherFrame {
	return otherFrame{le.Uint64(b), int64(le.Uint64(b[8:])), int64(le.Uint32(b[16:])), int64(le.Uint32(b[20:]))}
}
