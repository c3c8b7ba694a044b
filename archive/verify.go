package archive

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Damage is one part of a pack that differs from what was written.
type Damage struct {
	Part     string // "messages", "rows", "payloads" or "tables"
	Offset   int64  // of the part, in the file
	Size     int64  // of the part, in bytes
	Rows     []Row  // the messages lost, as far as their rows are readable
	Payloads []Sum  // the payloads lost, as far as their names are readable
	Err      error  // wraps ErrDamaged, or is an error of reading the file
}

// span is a part of the file.
type span struct{ from, to int64 }

// Verify reads the whole pack and yields the damaged parts, or nothing if every byte is as written. Damaged rows lose
// nothing while their messages are intact. Nor do damaged tables lose anything that [Salvage] finds.
func (p *Pack) Verify() iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		p := newPack(p.name, p.file, p.size, p.foot) // earlier reads prove nothing now
		ok := true
		report := func(part string, s span, rows []Row, sums []Sum, err error) {
			if err != nil && ok {
				ok = yield(Damage{part, s.from, s.to - s.from, rows, sums, p.wrap(err)})
			}
		}
		spans := []span{{0, skipHead}}
		report("tables", spans[0], nil, nil, p.verifyHead(0, skipHead, kindPack))
		tables := span{p.foot.tables, p.foot.size}
		report("tables", tables, nil, nil, p.verifyHead(tables.from, tables.to-tables.from, kindTables))
		if p.size != p.foot.size {
			report("tables", tables, nil, nil, damaged("the file lacks them, and was salvaged"))
		}
		for _, t := range []*table{&p.directory, &p.ids, &p.payloads} {
			for n := range t.pages() {
				at, size, _ := t.page(n)
				_, _, err := p.page(t, n)
				report("tables", span{at, at + size}, nil, nil, err)
			}
		}
		known := true // whether all parts are known
		bytes := int64(0)
		for n := range p.foot.segments {
			if !ok {
				return
			}
			s, count, err := p.segment(n)
			if err != nil {
				known = false
				report("tables", tables, nil, nil, fmt.Errorf("segment %d: %w", n, err))
				continue
			}
			spans = append(spans, span{s.offset, s.end()})
			rows, err := p.readRows(n, &s, count)
			report("rows", span{s.offset + s.packed, s.end()}, nil, nil, err)
			lost, err := p.verifySegment(n, &s, rows)
			report("messages", span{s.offset, s.offset + s.packed}, lost, nil, err)
			bytes += s.content - count
			known = known && rows != nil
		}
		entries, whole := p.payloadEntries()
		known = known && whole
		for len(entries) > 0 && ok {
			n := 1
			for n < len(entries) && entries[n].offset == entries[0].offset {
				n++
			}
			s := span{entries[0].offset, entries[0].offset + entries[0].length}
			spans = append(spans, s)
			sums, err := p.verifyGroup(entries[:n])
			report("payloads", s, nil, sums, err)
			entries = entries[n:]
		}
		if !known {
			return
		}
		if bytes != p.foot.bytes {
			report("tables", tables, nil, nil, damaged("%d bytes of messages, the footer says %d", bytes, p.foot.bytes))
		}
		report("tables", tables, nil, nil, covered(append(spans, tables)))
	}
}

// covered reports bytes between the parts of a file, or in two of them.
func covered(spans []span) error {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from != spans[i-1].to {
			return damaged("a gap or an overlap before byte %d", spans[i].from)
		}
	}
	return nil
}

func (p *Pack) verifyHead(at, size int64, kind string) error {
	b := make([]byte, skipHead)
	if err := readAt(p.file, b, at); err != nil {
		return err
	}
	if want := appendSkip(nil, kind, int(size-skipHead)); string(b) != string(want) {
		return damaged("no %s at byte %d", kind, at)
	}
	return nil
}

// verifySegment reads the messages of a segment and returns the rows of the damaged ones.
func (p *Pack) verifySegment(n int64, s *segment, rows []Row) (lost []Row, err error) {
	f, err := p.frame(n, s)
	if err != nil {
		return rows, err
	}
	defer f.release()
	for i := range rows {
		if _, e := envelope(&rows[i], f.content); e != nil {
			lost, err = append(lost, rows[i]), e
		}
	}
	return lost, err
}

// payloadEntries returns the payload table in the order of the file, and whether all of it was readable.
func (p *Pack) payloadEntries() (all []payload, whole bool) {
	whole = true
	for n := range p.payloads.pages() {
		_, entries, err := p.page(&p.payloads, n)
		whole = whole && err == nil // the caller has reported an unreadable page
		for ; len(entries) > 0; entries = entries[payloadWidth:] {
			all = append(all, parsePayload(entries))
		}
	}
	slices.SortFunc(all, func(a, b payload) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.number, b.number))
	})
	return all, whole
}

// verifyGroup reads the group of some entries and returns the names of the damaged payloads.
func (p *Pack) verifyGroup(entries []payload) (lost []Sum, err error) {
	var g *group
	gerr := damaged("payload table: group at byte %d", entries[0].offset)
	if entries[0].sane(p.foot.tables) {
		g, gerr = p.group(&entries[0])
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
