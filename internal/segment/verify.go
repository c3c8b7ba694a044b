package segment

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
	Part     string // "messages", "rows", "payloads", "records", "state" or "tables"
	Offset   int64  // of the part, in the file
	Size     int64  // of the part, in bytes
	Rows     []Row  // the messages lost, as far as their rows are readable
	Payloads []Sum  // the payloads lost, as far as their names are readable
	Err      error  // wraps ErrDamaged, or is an error of reading the file
}

// Verify reads the whole segment and yields the damaged parts, or nothing if every byte is as written. Damaged rows lose
// nothing while their messages are intact. Nor do damaged tables lose anything that [Salvage] finds.
func (s *Segment) Verify() iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		v := verification{Segment: newSegment(s.name, s.file, s.size, s.foot), yield: yield} // earlier reads prove nothing now
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

func (v *verification) report(name string, p part, rows []Row, sums []Sum, err error) {
	if err != nil && !v.stopped {
		v.stopped = !v.yield(Damage{name, p.from, p.to - p.from, rows, sums, v.wrap(err)})
	}
}

func (v *verification) run() {
	head := part{0, skipHead}
	v.report("tables", head, nil, nil, v.verifyHead(0, skipHead, kindSegment))
	all := part{v.foot.tables, v.foot.size}
	v.report("tables", all, nil, nil, v.verifyHead(all.from, all.to-all.from, kindTables))
	if v.size != v.foot.size {
		v.report("tables", all, nil, nil, damaged("the file lacks them, and was salvaged"))
	}
	v.parts = append(v.parts, head, all)
	for i := range v.tables {
		for n := range v.tables[i].pages() {
			at, size, _ := v.tables[i].page(n)
			_, _, err := v.page(&v.tables[i], n)
			v.report("tables", part{at, at + size}, nil, nil, err)
		}
	}
	if bytes := v.blocks(all); !v.unknown && bytes != v.foot.bytes {
		v.report("tables", all, nil, nil, damaged("%d bytes of messages, the footer says %d", bytes, v.foot.bytes))
	}
	v.groups()
	v.records()
	if !v.unknown {
		v.report("tables", all, nil, nil, covered(v.parts))
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
			v.report("tables", tables, nil, nil, fmt.Errorf("block %d: %w", n, err))
			continue
		}
		v.parts = append(v.parts, part{b.offset, b.end()})
		rows, sum, err := v.readRows(n, &b, count)
		v.report("rows", part{b.offset + b.packed, b.end()}, nil, nil, err)
		v.unknown = v.unknown || rows == nil
		lost, err := v.verifyBlock(n, &b, rows)
		if err == nil && rows != nil {
			err = v.verifyFrame(n, &b, sum)
		}
		v.report("messages", part{b.offset, b.offset + b.packed}, lost, nil, err)
		for i := range rows {
			bytes += rows[i].Size
		}
	}
	return bytes
}

func (v *verification) groups() {
	entries, whole := v.payloadEntries()
	v.unknown = v.unknown || !whole
	for len(entries) > 0 && !v.stopped {
		n := 1
		for n < len(entries) && entries[n].offset == entries[0].offset {
			n++
		}
		p := part{entries[0].offset, entries[0].offset + entries[0].length}
		v.parts = append(v.parts, p)
		sums, err := v.verifyGroup(entries[:n])
		v.report("payloads", p, nil, sums, err)
		entries = entries[n:]
	}
}

// records reads the records that are no messages, and the state.
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
		v.report("records", p, nil, nil, err)
	}
	p := part{v.foot.state, v.foot.tables}
	v.parts = append(v.parts, p)
	_, err := v.State()
	v.report("state", p, nil, nil, err)
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
		return damaged("no %s at byte %d", kind, at)
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

// payloadEntries returns the payload table in the order of the file, and whether all of it was readable.
func (s *Segment) payloadEntries() (all []payload, whole bool) {
	whole = true
	t := &s.tables[payloads]
	for n := range t.pages() {
		_, entries, err := s.page(t, n)
		whole = whole && err == nil // the caller has reported an unreadable page
		for ; len(entries) > 0; entries = entries[t.shape.width:] {
			all = append(all, parsePayload(entries))
		}
	}
	slices.SortFunc(all, func(a, b payload) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.number, b.number))
	})
	return all, whole
}

// verifyGroup reads the group of some entries and returns the names of the damaged payloads.
func (s *Segment) verifyGroup(entries []payload) (lost []Sum, err error) {
	var g *group
	gerr := damaged("payload table: group at byte %d", entries[0].offset)
	if entries[0].sane(s.foot.tables) {
		g, gerr = s.group(&entries[0])
	}
	for i := range entries {
		perr := gerr
		if perr == nil {
			_, perr = g.payload(entries[i].number, entries[i].sum)
		}
		if perr == nil && entries[i].length != entries[0].length {
			perr = damaged("payload table: %s", entries[i].sum)
		}
		if perr != nil {
			lost = append(lost, entries[i].sum)
			err = perr
		}
	}
	return lost, err
}
