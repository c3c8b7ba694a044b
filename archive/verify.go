package archive

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Damage is one part of a segment that differs from what was written.
type Damage struct {
	Part   string // "messages", "rows", "records", "state" or "tables"
	Offset int64  // of the part, in the file
	Size   int64  // of the part, in bytes
	Rows   []Row  // the messages lost, as far as their rows are readable
	Err    error  // wraps ErrDamaged, or is an error of reading the file
}

// Verify reads the whole segment and yields the damaged parts, or nothing if every byte is as written. Damaged rows lose
// nothing while their messages are intact. Nor do damaged tables lose anything that [Salvage] finds.
func (s *Segment) Verify() iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		v := verification{Segment: newSegment(s.name, s.file, s.size, s.foot), yield: yield} // earlier reads prove nothing now
		defer v.forget()
		v.run()
	}
}

// verification is a run of Verify.
type verification struct {
	*Segment
	yield   func(Damage) bool
	parts   []part
	stopped bool
	unknown bool // some part could not be found
}

// part is a part of the file.
type part struct{ from, to int64 }

func (v *verification) report(name string, p part, rows []Row, err error) {
	if err != nil && !v.stopped {
		v.stopped = !v.yield(Damage{name, p.from, p.to - p.from, rows, v.wrap(err)})
	}
}

func (v *verification) run() {
	head := part{0, skipHead}
	v.report("tables", head, nil, v.verifyHead(0, skipHead, kindSegment))
	all := part{v.foot.tables, v.foot.size}
	v.report("tables", all, nil, v.verifyHead(all.from, all.to-all.from, kindTables))
	if v.size != v.foot.size {
		v.report("tables", all, nil, damaged("they are missing; the rest was salvaged"))
	}
	v.parts = append(v.parts, head, all)
	for i := range v.tables {
		for n := range v.tables[i].pages() {
			at, size, _ := v.tables[i].page(n)
			_, _, err := v.page(&v.tables[i], n)
			v.report("tables", part{at, at + size}, nil, err)
		}
	}
	if bytes := v.blocks(all); !v.unknown && bytes != v.foot.bytes {
		v.report("tables", all, nil, damaged("%d bytes of messages, but the footer says %d", bytes, v.foot.bytes))
	}
	v.records()
	if !v.unknown {
		v.report("tables", all, nil, covered(v.parts))
	}
}

// blocks reads the blocks, and returns the length of the envelopes.
func (v *verification) blocks(tables part) (bytes int64) {
	for n := range v.tables[directory].count {
		if v.stopped {
			return 0
		}
		b, count, err := v.block(n)
		if err != nil {
			v.unknown = true
			v.report("tables", tables, nil, fmt.Errorf("block %d: %w", n, err))
			continue
		}
		v.parts = append(v.parts, part{b.offset, b.end()})
		rows, sum, err := v.readRows(n, &b, count)
		v.report("rows", part{b.offset + b.packed, b.end()}, nil, err)
		v.unknown = v.unknown || rows == nil
		lost, err := v.verifyBlock(n, &b, rows)
		if err == nil && rows != nil {
			err = v.verifyFrame(n, &b, sum)
		}
		v.report("messages", part{b.offset, b.offset + b.packed}, lost, err)
		for i := range rows {
			bytes += rows[i].Size
		}
	}
	return bytes
}

// records reads the records that are not messages, and the state.
func (v *verification) records() {
	for n := range v.tables[others].count {
		e, err := v.entryOf(others, n)
		if err != nil {
			v.unknown = true // reported with its page
			continue
		}
		o := parseOther(e)
		p := part{o.offset, o.offset + o.length}
		v.parts = append(v.parts, p)
		_, err = v.othersOf(&o)
		v.report("records", p, nil, err)
	}
	p := part{v.foot.state, v.foot.tables}
	v.parts = append(v.parts, p)
	_, err := v.State()
	v.report("state", p, nil, err)
}

// covered reports bytes between the parts of a file, or in two of them.
func covered(parts []part) error {
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(parts); i++ {
		if parts[i].from != parts[i-1].to {
			return damaged("a gap or an overlap before byte %d", parts[i].from)
		}
	}
	return nil
}

func (s *Segment) verifyHead(at, size int64, kind string) error {
	b := make([]byte, skipHead)
	if err := readAt(s.file, b, at); err != nil {
		return err
	}
	if want := appendSkip(nil, kind, int(size-skipHead)); string(b) != string(want) {
		return damaged("%s not found at byte %d", kind, at)
	}
	return nil
}

// verifyFrame compares the bytes of a message frame with their sum.
func (s *Segment) verifyFrame(n int64, b *block, sum uint64) error {
	h := xxhash.New()
	if _, err := io.Copy(h, io.NewSectionReader(s.file, b.offset, b.packed)); err != nil {
		return err
	}
	if h.Sum64() != sum {
		return damaged("block %d: the frame differs from what was written", n)
	}
	return nil
}

// verifyBlock reads the messages of a block and returns the rows of the damaged ones.
func (s *Segment) verifyBlock(n int64, b *block, rows []Row) (lost []Row, err error) {
	f, err := s.frame(n, b)
	if err != nil {
		return rows, err
	}
	defer f.release()
	for i := range rows {
		if rows[i].Gone != Here {
			continue
		}
		if _, e := envelope(&rows[i], f.content); e != nil {
			lost, err = append(lost, rows[i]), e
		}
	}
	return lost, err
}
