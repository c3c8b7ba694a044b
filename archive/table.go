package archive

import (
	"encoding/binary"

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

var (
	directoryShape = shape{width: directoryWidth, each: 64}
	idShape        = shape{width: idWidth, each: 512, head: int64(len(uuid.UUID{}))}
	payloadShape   = shape{width: payloadWidth, each: 64}
)

func (t *table) pages() int64 { return (t.count + t.shape.each - 1) / t.shape.each }

// size returns the length of the table in bytes.
func (t *table) size() int64 { return t.count*t.shape.width + t.pages()*(t.shape.head+sumSize) }

// page returns the offset, length and number of entries of a page.
func (t *table) page(n int64) (at, size, entries int64) {
	s := t.shape
	entries = min(s.each, t.count-n*s.each)
	return t.at + n*(s.head+s.each*s.width+sumSize), s.head + entries*s.width + sumSize, entries
}

// segment is an entry of the directory. It locates a message frame and its rows.
type segment struct {
	line     uuid.UUID // of the first row
	position int64
	first    int64 // number of rows in the segments before it
	offset   int64 // of the frame; its rows follow
	packed   int64 // length of the frame
	content  int64 // length of the decoded content
	rows     int64 // length of the skippable frame with the rows
}

const directoryWidth = 16 + 8 + 4 + 8 + 4 + 4 + 4

func (s *segment) append(b []byte) []byte {
	b = append(b, s.line[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.position))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.first))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.offset))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.packed))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.content))
	return binary.LittleEndian.AppendUint32(b, uint32(s.rows))
}

func parseSegment(b []byte) (s segment) {
	copy(s.line[:], b)
	s.position = int64(binary.LittleEndian.Uint64(b[16:]))
	s.first = int64(binary.LittleEndian.Uint32(b[24:]))
	s.offset = int64(binary.LittleEndian.Uint64(b[28:]))
	s.packed = int64(binary.LittleEndian.Uint32(b[36:]))
	s.content = int64(binary.LittleEndian.Uint32(b[40:]))
	s.rows = int64(binary.LittleEndian.Uint32(b[44:]))
	return s
}

// end returns the offset after the segment.
func (s *segment) end() int64 { return s.offset + s.packed + s.rows }

// sane reports whether a segment fits before limit.
func (s *segment) sane(limit int64) bool {
	return s.position >= 0 && s.offset >= 0 && s.offset <= limit && s.end() <= limit &&
		s.packed <= maxFrame && s.content <= MaxMessage+1 && s.rows <= maxRows
}

// An entry of the id table is the end of an id (2 bytes) and the number of its row (3 bytes). Entries are sorted by id;
// a page begins with its first id. Ids find a page, tags find an entry, and only then does a lookup read a row.
const idWidth = 2 + 3

func appendIDEntry(b []byte, id *uuid.UUID, row uint32) []byte {
	return append(b, id[14], id[15], byte(row), byte(row>>8), byte(row>>16))
}

func parseIDEntry(b []byte) (tag [2]byte, row int64) {
	return [2]byte(b), int64(b[2]) | int64(b[3])<<8 | int64(b[4])<<16
}

// payload is an entry of the payload table: the number of the payload in a group.
type payload struct {
	sum    Sum
	offset int64 // of the group
	length int64 // of the group
	number int64
}

const payloadWidth = 32 + 8 + 4 + 4

func (p *payload) append(b []byte) []byte {
	b = append(b, p.sum[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.offset))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.length))
	return binary.LittleEndian.AppendUint32(b, uint32(p.number))
}

func parsePayload(b []byte) (p payload) {
	copy(p.sum[:], b)
	p.offset = int64(binary.LittleEndian.Uint64(b[32:]))
	p.length = int64(binary.LittleEndian.Uint32(b[40:]))
	p.number = int64(binary.LittleEndian.Uint32(b[44:]))
	return p
}

func (p *payload) sane(limit int64) bool {
	return p.offset >= 0 && p.offset <= limit && p.length <= maxGroup && p.offset+p.length <= limit
}

// footer is the end of the tables' frame and of the file.
type footer struct {
	messages int64
	segments int64
	payloads int64
	bytes    int64 // of the envelopes
	tables   int64 // offset of the tables' frame
	size     int64 // of the file
}

const footerSize = 6*8 + kindSize + sumSize

func (f *footer) append(b []byte) []byte {
	start := len(b)
	for _, v := range []int64{f.messages, f.segments, f.payloads, f.bytes, f.tables, f.size} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return appendSum(append(b, kindPack...), start)
}

// layout locates the tables, one after the other.
func (f *footer) layout() (directory, ids, payloads table) {
	directory = table{f.tables + skipHead, f.segments, &directoryShape}
	ids = table{directory.at + directory.size(), f.messages, &idShape}
	payloads = table{ids.at + ids.size(), f.payloads, &payloadShape}
	return directory, ids, payloads
}

// otherVersion reports whether a kind is that of a pack with another digit.
func otherVersion(kind []byte) bool {
	name, digit := kind[:kindSize-1], kind[kindSize-1]
	return string(name) == kindPack[:kindSize-1] && digit >= '0' && digit <= '9' && digit != kindPack[kindSize-1]
}

// parseFooter reads the footer of a file of this size.
func parseFooter(b []byte, size int64) (f footer, err error) {
	kind := b[footerSize-kindSize-sumSize : footerSize-sumSize]
	switch {
	case !summed(b):
		return f, damaged("the footer is missing or damaged")
	case string(kind) != kindPack:
		if otherVersion(kind) {
			return f, ErrVersion
		}
		return f, damaged("no footer of a pack")
	}
	for i, p := range []*int64{&f.messages, &f.segments, &f.payloads, &f.bytes, &f.tables, &f.size} {
		*p = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	// Counts are bounded by the space of their entries, so a footer cannot claim entries that the file does not hold.
	for _, n := range []int64{f.messages, f.segments, f.payloads} {
		if n < 0 || n > MaxCount {
			return f, damaged("the footer counts %d", n)
		}
	}
	if f.bytes < 0 || f.tables < skipHead || f.size != size || f.tables > size {
		return f, damaged("the footer is of another file")
	}
	_, _, payloads := f.layout()
	if payloads.at+payloads.size()+footerSize != size {
		return f, damaged("the tables are not as long as the footer says")
	}
	return f, nil
}
