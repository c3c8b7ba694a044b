package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// hostile gives tables and footer new sums, so that only what they say can be wrong.
func hostile(t tb, file []byte, change func(f *footer, directory []segment, payloads []payload)) []byte {
	t.Helper()
	f, err := parseFooter(file[len(file)-footerSize:], int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	was := f
	directory, ids, payloadTable := f.layout()
	var segments []segment
	for n := range f.segments {
		segments = append(segments, parseSegment(file[directory.at+n*directoryWidth:]))
	}
	var entries []payload
	for n := range f.payloads {
		entries = append(entries, parsePayload(file[payloadTable.at+n*payloadWidth:]))
	}
	change(&f, segments, entries)
	b := bytes.Clone(file[:directory.at])
	for _, table := range []struct {
		table
		entry func(b []byte, i int64) []byte
	}{
		{directory, func(b []byte, i int64) []byte { return segments[i].append(b) }},
		{ids, nil},
		{payloadTable, func(b []byte, i int64) []byte { return entries[i].append(b) }},
	} {
		if table.entry == nil {
			b = append(b, file[ids.at:ids.at+ids.size()]...)
			continue
		}
		_ = table.write(func(page []byte) error { b = append(b, page...); return nil }, nil, table.entry)
	}
	if f.size == was.size {
		f.size = int64(len(b)) + footerSize
	}
	return f.append(b)
}

// TestHostile opens packs whose sums are right and whose tables lie. Nothing but damage may come of it, and no more
// memory than there is file.
func TestHostile(t *testing.T) {
	entries, payloads, file := small(t)
	if !bytes.Equal(hostile(t, file, func(*footer, []segment, []payload) {}), file) {
		t.Fatal("tables that nothing was changed in differ")
	}
	huge := int64(1) << 62
	for name, change := range map[string]func(*footer, []segment, []payload){
		"messages":        func(f *footer, _ []segment, _ []payload) { f.messages = huge },
		"more messages":   func(f *footer, _ []segment, _ []payload) { f.messages++ },
		"segments":        func(f *footer, _ []segment, _ []payload) { f.segments = MaxCount },
		"negative":        func(f *footer, _ []segment, _ []payload) { f.payloads = -1 },
		"no messages":     func(f *footer, _ []segment, _ []payload) { f.messages = 0 },
		"bytes":           func(f *footer, _ []segment, _ []payload) { f.bytes = -1 },
		"other bytes":     func(f *footer, _ []segment, _ []payload) { f.bytes++ },
		"tables":          func(f *footer, _ []segment, _ []payload) { f.tables = huge },
		"tables before":   func(f *footer, _ []segment, _ []payload) { f.tables = -f.tables },
		"size":            func(f *footer, _ []segment, _ []payload) { f.size = huge },
		"offset":          func(_ *footer, s []segment, _ []payload) { s[1].offset = huge },
		"negative offset": func(_ *footer, s []segment, _ []payload) { s[1].offset = -1 },
		"overlap":         func(_ *footer, s []segment, _ []payload) { s[1].offset = s[0].offset },
		"same":            func(_ *footer, s []segment, _ []payload) { s[1] = s[0] },
		"packed":          func(_ *footer, s []segment, _ []payload) { s[1].packed = 1<<32 - 1 },
		"no frame":        func(_ *footer, s []segment, _ []payload) { s[1].packed, s[1].content = 0, 0 },
		"content":         func(_ *footer, s []segment, _ []payload) { s[1].content = MaxMessage + 1 },
		"endless content": func(_ *footer, s []segment, _ []payload) { s[1].content = 1<<32 - 1 },
		"a byte less":     func(_ *footer, s []segment, _ []payload) { s[1].content-- },
		"rows":            func(_ *footer, s []segment, _ []payload) { s[1].rows = maxRows },
		"no rows":         func(_ *footer, s []segment, _ []payload) { s[1].rows = 0 },
		"first":           func(_ *footer, s []segment, _ []payload) { s[1].first = 1<<32 - 1 },
		"no first":        func(_ *footer, s []segment, _ []payload) { s[1].first = 0 },
		"one row more":    func(_ *footer, s []segment, _ []payload) { s[1].first-- },
		"line":            func(_ *footer, s []segment, _ []payload) { s[1].line = lineID(9) },
		"position":        func(_ *footer, s []segment, _ []payload) { s[1].position = -1 },
		"other position":  func(_ *footer, s []segment, _ []payload) { s[1].position++ },
		"payload offset":  func(_ *footer, _ []segment, p []payload) { p[1].offset = huge },
		"payload length":  func(_ *footer, _ []segment, p []payload) { p[1].length = 1<<32 - 1 },
		"payload number":  func(_ *footer, _ []segment, p []payload) { p[1].number = 1<<32 - 1 },
		"payload elsewhere": func(_ *footer, _ []segment, p []payload) {
			p[1].offset, p[1].length = p[1].offset+8, p[1].length-8
		},
	} {
		disk := put(t, hostile(t, file, change))
		p, err := Open(disk, damagedName)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		readAll(t, p, entries, payloads)
		damages := 0
		for d := range p.Verify() {
			damages++
			if !errors.Is(d.Err, ErrDamaged) {
				t.Errorf("%s: %v", name, d.Err)
			}
		}
		if damages == 0 {
			t.Errorf("%s: not found", name)
		}
		p.Close()
		if found, _ := scanned(t, disk, entries); found != len(entries) {
			t.Errorf("%s: scan finds %d messages", name, found)
		}
	}
}

// readAll reads everything; what a hostile pack says may be missing, but not different.
func readAll(t tb, p *Pack, entries []entry, payloads [][]byte) {
	t.Helper()
	right := func(m *Message, err error) {
		if err == nil && !known(entries, m) {
			t.Fatalf("message from nowhere: %+v", m)
		}
	}
	for i := range entries {
		r, err := p.Lookup(entries[i].row.Line, entries[i].row.Position)
		if err == nil {
			b, err := p.ReadMessage(r)
			right(&Message{r, b}, err)
		}
		for range p.LookupID(entries[i].row.ID) {
		}
	}
	for range p.Runs() {
	}
	for _, line := range []uuid.UUID{lineID(1), lineID(2), lineID(9)} {
		for range p.Rows(line, -1<<62, 1<<62) {
		}
		for m, err := range eachMessage(p, line, -1<<62, 1<<62) {
			right(&m, err)
		}
	}
	for _, b := range payloads {
		if got, err := p.Payload(SumOf(b)); err == nil && !bytes.Equal(got, b) {
			t.Fatal("other payload")
		}
	}
	for range p.Payloads() {
	}
}

// TestHostileRows reads rows that no writer makes.
func TestHostileRows(t *testing.T) {
	row := entryOf(t, makeEnvelope(1, 5, "")).row
	whole := appendRow(nil, &row, nil)
	long := row
	long.Size = MaxMessage + 1
	for name, b := range map[string][]byte{
		"unknown flag": append([]byte{whole[0] | 16}, whole[1:]...),
		"no line":      append([]byte{whole[0] &^ rowJumps}, whole[1+17:]...),
		"cut":          whole[:len(whole)-1],
		"same place":   append(bytes.Clone(whole), whole...),
		"too large":    appendRow(nil, &long, nil),
	} {
		if rows, _, err := parseRows(b, 0, 1); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %+v, %v", name, rows, err)
		}
	}
	if rows, size, err := parseRows(whole, 0, 1); err != nil || size != row.Size+1 || len(rows) != 1 || rows[0] != row {
		t.Error(rows, size, err)
	}
}

// TestHostileFrames decodes frames that declare more than they hold. They are refused before there is memory for it.
func TestHostileFrames(t *testing.T) {
	frame := func(declared uint64, blocks ...byte) []byte {
		b := []byte{0x28, 0xb5, 0x2f, 0xfd, 3<<6 | 1<<2, 0} // 8 bytes of size, a checksum, a window of 1 KiB
		b = binary.LittleEndian.AppendUint64(b, declared)
		return append(append(b, blocks...), 0, 0, 0, 0)
	}
	empty := []byte{1, 0, 0} // a last block, raw, of nothing
	for name, b := range map[string][]byte{
		"more than a message": frame(MaxMessage+2, empty...),
		"more than blocks":    frame(MaxMessage, empty...),
		"endless":             frame(1<<64-1, empty...),
		"no block":            frame(MaxMessage),
		"large block":         frame(10, 0xff, 0xff, 0xff),
		"window":              append([]byte{0x28, 0xb5, 0x2f, 0xfd, 1 << 2, 0xff, 1, 0, 0}, 0, 0, 0, 0),
		"dictionary":          append([]byte{0x28, 0xb5, 0x2f, 0xfd, 1<<5 | 1<<2 | 1, 7, 1, 1, 0, 0}, 0, 0, 0, 0),
		"no checksum":         {0x28, 0xb5, 0x2f, 0xfd, 1 << 5, 0, 1, 0, 0},
	} {
		for _, size := range []int64{-1, MaxMessage} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decode(b, size, nil)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("%s: %d bytes allocated", name, n)
			}
		}
	}
}

// blocks is a file of full blocks, one behind the other, with the last one at an offset.
type blocks int64

func (r blocks) ReadAt(b []byte, off int64) (int, error) {
	if off < int64(r) {
		return copy(b, []byte{0, 0, maxBlock >> 13}), nil
	}
	return copy(b, []byte{1, 0, 0}), nil
}

// TestLongFrames: no frame is longer than maxFrame, and no segment of the directory either.
func TestLongFrames(t *testing.T) {
	for n, want := range map[int64]bool{maxFrame - 2*maxBlock: true, maxFrame: false} {
		length, _, err := frameLength(blocks(n), 0, 1<<40, maxFrame, &zstd.Header{HasCheckSum: true})
		if (err == nil) != want || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("last block at byte %d: %d bytes, %v", n, length, err)
		}
	}
	for n, want := range map[int64]bool{maxFrame: true, maxFrame + 1: false} {
		s := segment{packed: n}
		if s.sane(1<<40) != want {
			t.Errorf("%d bytes: %v", n, !want)
		}
	}
}

// TestHostileFrameOfMany: a frame that is larger than [FrameSize] holds one message, so a small one is never read from
// it.
func TestHostileFrameOfMany(t *testing.T) {
	disk := crashfs.New()
	w, err := Create(disk)
	if err != nil {
		t.Fatal(err)
	}
	w.limit = 32 << 20
	for i := range 3 {
		if err := w.Add(makeEnvelope(1, i, strings.Repeat("a", []int{20 << 20, 10, 10}[i]))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	p, err := Open(disk, FileName(w.ID()))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rows := make([]Row, 2)
	for i := range rows {
		if rows[i], err = p.Lookup(lineID(1), int64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = p.ReadMessage(rows[0])
	all := p.ReadMessages(rows)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrDamaged) || all[0] != nil || all[1] != nil {
		t.Errorf("%v, %d bytes", err, len(all[0]))
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}
