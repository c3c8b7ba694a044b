package archive

import (
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// footer is the end of the tables' frame and of the file.
type footer struct {
	context  uuid.UUID
	from, to journal.Position // the places before the first record and after the last one
	counts   [tableCount]int64
	bytes    int64 // of the envelopes
	state    int64 // offset of the frame with the state
	tables   int64 // offset of the tables' frame
	size     int64 // of the file
}

const footerSize = placeSize + (tableCount+4)*8 + kindSize + sumSize

func (f *footer) numbers() []*int64 {
	var all []*int64
	for i := range f.counts {
		all = append(all, &f.counts[i])
	}
	return append(all, &f.bytes, &f.state, &f.tables, &f.size)
}

func (f *footer) append(b []byte) []byte {
	start := len(b)
	b = f.place(b)
	for _, v := range f.numbers() {
		b = le.AppendUint64(b, uint64(*v))
	}
	return appendSum(append(b, kindSegment...), start)
}

// placeSize is the length of what the state begins with, and the footer: the context, and the places before the first
// record and after the last one.
const placeSize = 16 + 2*16

func (f *footer) place(b []byte) []byte {
	return appendPosition(appendPosition(append(b, f.context[:]...), f.from), f.to)
}

func (f *footer) parsePlace(b []byte) {
	copy(f.context[:], b)
	f.from, f.to = parsePosition(b[16:]), parsePosition(b[32:])
}

// layout locates the tables, one after the other, and where they end.
func (f *footer) layout() (all [tableCount]table, end int64) {
	end = f.tables + skipHead
	for i := range all {
		all[i] = table{end, f.counts[i], &shapes[i]}
		end += all[i].size()
	}
	return all, end
}

// otherVersion reports whether a kind is that of a segment with another digit.
func otherVersion(kind []byte) bool {
	name, digit := kind[:kindSize-1], kind[kindSize-1]
	return string(name) == kindSegment[:kindSize-1] && digit >= '0' && digit <= '9' && digit != kindSegment[kindSize-1]
}

// parseFooter reads the footer of a file of this size.
func parseFooter(b []byte, size int64) (f footer, err error) {
	kind := b[footerSize-kindSize-sumSize : footerSize-sumSize]
	switch {
	case !summed(b):
		return f, damaged("the footer is missing or damaged")
	case string(kind) != kindSegment:
		if otherVersion(kind) {
			return f, ErrVersion
		}
		return f, damaged("not a segment footer")
	}
	f.parsePlace(b)
	for i, p := range f.numbers() {
		*p = int64(le.Uint64(b[placeSize+8*i:]))
	}
	// Counts are bounded by the space of their entries, so a footer cannot claim entries that the file does not hold.
	for _, n := range f.counts {
		if n < 0 || n > MaxCount {
			return f, damaged("the footer has the invalid count %d", n)
		}
	}
	if f.bytes < 0 || f.tables < skipHead || f.size != size || f.tables > size || f.state < 0 || f.state > f.tables ||
		f.from.Seq >= f.to.Seq || f.to.Seq > 1<<62 {
		return f, damaged("the footer belongs to another file")
	}
	if _, end := f.layout(); end+footerSize != size {
		return f, damaged("the tables are not as long as the footer says")
	}
	return f, nil
}
