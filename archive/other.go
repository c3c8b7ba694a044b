package archive

import (
	"encoding/binary"
	"iter"
	"math"
	"sort"
)

// Other is a record that is not a message. Its kind is one of package journal; Body is as it was committed. A message that
// a later record of the segment replaced leaves one behind, too: the place of the version that is gone.
type Other struct {
	Seq  uint64
	Kind string
	More bool // the commit continues with the next record
	Body []byte
}

const (
	// othersSize is how many bytes of records end their frame.
	othersSize = 256 << 10
	// maxOthers limits the frame: a record of metadata can be long.
	maxOthers = 80 << 20
	// maxKind is the longest name of a kind.
	maxKind = 32
)

// append appends a record as a frame holds it.
func (o *Other) append(b []byte, before uint64) []byte {
	var flags byte
	if o.More {
		flags = 1
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, o.Seq-before)
	b = binary.AppendUvarint(b, uint64(len(o.Kind)))
	b = append(b, o.Kind...)
	b = binary.AppendUvarint(b, uint64(len(o.Body)))
	return append(b, o.Body...)
}

// parseOthers reads the records of a frame, of which the first has the number seq.
func parseOthers(b []byte, seq uint64) (all []Other, err error) {
	d := rowReader{b: b, ok: true}
	before := uint64(0)
	for len(d.b) > 0 {
		flags := d.take(1)[0]
		o := Other{Seq: before + uint64(d.uvarint(math.MaxInt64)), More: flags&1 != 0}
		o.Kind = string(d.text(maxKind))
		o.Body = d.text(int64(len(d.b)))
		if !d.ok || flags > 1 || o.Seq <= before && before > 0 || len(all) == 0 && o.Seq != seq {
			return nil, damaged("record %d of a frame cannot be read", len(all))
		}
		before = o.Seq
		all = append(all, o)
	}
	return all, nil
}

// text reads a length and as many bytes.
func (d *rowReader) text(most int64) []byte {
	n := d.uvarint(min(most, int64(len(d.b))))
	if !d.ok || n > int64(len(d.b)) {
		d.ok = false
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// Others yields the records that are not messages, from a number on, in order. For each damaged frame it yields an error
// that wraps [ErrDamaged], and continues.
func (s *Segment) Others(from uint64) iter.Seq2[Other, error] {
	return func(yield func(Other, error) bool) {
		count := s.tables[others].count
		var failed error
		entry := func(i int) (o otherFrame) {
			e, err := s.entryOf(others, int64(i))
			if err != nil {
				failed = err
				return o
			}
			return parseOther(e)
		}
		first := max(sort.Search(int(count), func(i int) bool { return failed == nil && entry(i).seq > from })-1, 0)
		if failed != nil {
			yield(Other{}, s.wrap(failed))
			return
		}
		for i := first; i < int(count); i++ {
			o := entry(i)
			all, err := []Other(nil), failed
			if failed = nil; err == nil {
				all, err = s.othersOf(&o)
			}
			if err != nil && !yield(Other{}, s.wrap(err)) {
				return
			}
			for _, x := range all {
				if x.Seq >= from && !yield(x, nil) {
					return
				}
			}
		}
	}
}

func (s *Segment) othersOf(o *otherFrame) ([]Other, error) {
	if o.offset < 0 || o.offset+o.length > s.foot.tables || o.length > maxOthers || o.content > maxOthers {
		return nil, damaged("invalid table of records")
	}
	content, err := s.summedFrame(o.offset, o.length, o.content, kindOthers)
	if err != nil {
		return nil, err
	}
	return parseOthers(content, o.seq)
}

// appendSummed appends a skippable frame with a kind: a compressed frame, and a sum.
func appendSummed(b []byte, kind string, with *Compressor, content []byte, at int64) []byte {
	start := len(b)
	b = appendSkip(b, kind, 0)
	b = with.appendFrame(b, content)
	le.PutUint32(b[start+4:], uint32(len(b)-start-8+sumSize))
	return le.AppendUint64(b, placedSum(b[start+8:], at))
}

// summedFrame reads what appendSummed wrote. A negative size means that of the frame.
func (s *Segment) summedFrame(at, length, size int64, kind string) ([]byte, error) {
	if length > maxOthers {
		return nil, damaged("frame %s of %d bytes exceeds the limit", kind, length)
	}
	b := make([]byte, length) // at most maxOthers, and within the file
	if err := readAt(s.file, b, at); err != nil {
		return nil, err
	}
	if !isSkip(b, kind) || !placed(b, at) {
		return nil, damaged("frame %s at byte %d", kind, at)
	}
	return decode(b[skipHead:len(b)-sumSize], size, nil)
}

// State returns the state of the context after the last record, as the writer stored it.
func (s *Segment) State() ([]byte, error) {
	b, err := s.summedFrame(s.foot.state, s.stateEnd-s.foot.state, -1, kindState)
	if err == nil && len(b) < placeSize {
		err = damaged("the state")
	}
	if err != nil {
		return nil, s.wrap(err)
	}
	return b[placeSize:], nil
}
