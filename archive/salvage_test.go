package archive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

func salvagePack(t tb, fsys vfs.FS) *Pack {
	t.Helper()
	p, err := Salvage(fsys, damagedName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// checkSalvaged compares a salvaged pack with what a scan finds in the same file, and returns both. All that is found
// is in the pack, and nothing else.
func checkSalvaged(t tb, fsys vfs.FS) (p *Pack, rows []ScanResult, payloads map[Sum][]byte) {
	t.Helper()
	p = salvagePack(t, fsys)
	payloads = map[Sum][]byte{}
	size := int64(0)
	var names []Sum
	for f, err := range Scan(fsys, damagedName) {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Name == nil:
			rows = append(rows, f)
			size += f.Size
		case f.Err == nil && payloads[*f.Name] == nil:
			payloads[*f.Name] = append([]byte{}, f.Payload...)
			names = append(names, *f.Name)
		}
	}
	if p.Len() != int64(len(rows)) || p.Bytes() != size || p.PayloadCount() != int64(len(payloads)) {
		t.Fatalf(
			"%d messages of %d bytes, %d payloads; a scan finds %d, %d, %d",
			p.Len(),
			p.Bytes(),
			p.PayloadCount(),
			len(rows),
			size,
			len(payloads),
		)
	}
	for i := range rows {
		checkFound(t, p, &rows[i])
	}
	checkOrder(t, p, rows)
	for sum, want := range payloads {
		if b, err := p.Payload(sum); err != nil || !bytes.Equal(b, want) {
			t.Fatalf("payload %s: %q, %v", sum, b, err)
		}
		if ok, err := p.HasPayload(sum); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	slices.SortFunc(names, func(a, b Sum) int { return bytes.Compare(a[:], b[:]) })
	for sum, err := range p.Payloads() {
		if err != nil || len(names) == 0 || sum != names[0] {
			t.Fatalf("payload %s, wanted %v: %v", sum, names, err)
		}
		names = names[1:]
	}
	if len(names) > 0 {
		t.Fatalf("payloads without %v", names)
	}
	damages := 0
	for range p.Verify() {
		damages++
	}
	if damages == 0 {
		t.Fatal("nothing is said of the tables")
	}
	return p, rows, payloads
}

// checkFound looks up a row, and reads its message, as a scan found it.
func checkFound(t tb, p *Pack, f *ScanResult) {
	t.Helper()
	r, err := p.Lookup(f.Line, f.Position)
	if err != nil || bare(r) != bare(f.Row) {
		t.Fatalf("%+v, %v, wanted %+v", r, err, f.Row)
	}
	b, err := p.ReadMessage(r)
	if !bytes.Equal(b, f.Envelope) || (f.Err == nil) != (err == nil) || err != nil && !errors.Is(err, ErrDamaged) {
		t.Fatalf("position %d: %q, %v, wanted %q, %v", f.Position, b, err, f.Envelope, f.Err)
	}
	found := 0
	for other, err := range p.LookupID(f.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if other == r {
			found++
		}
	}
	if found != 1 {
		t.Fatalf("position %d: %d times by id", f.Position, found)
	}
}

// checkOrder goes through a pack by runs; its rows come in the order in which a scan found them.
func checkOrder(t tb, p *Pack, want []ScanResult) {
	t.Helper()
	var rows []Row
	var messages []Message
	for run, err := range p.Runs() {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range p.Rows(run.Line, run.From, run.To) {
			if rows = append(rows, r); err != nil {
				t.Fatal(err)
			}
		}
		for m, err := range eachMessage(p, run.Line, run.From, run.To) {
			if messages = append(messages, m); (err == nil) != (m.Envelope != nil) {
				t.Fatal(m, err)
			}
		}
	}
	if len(rows) != len(want) || len(messages) != len(want) {
		t.Fatalf("%d rows, %d messages, wanted %d", len(rows), len(messages), len(want))
	}
	envelopes := p.ReadMessages(rows)
	for i := range want {
		f := &want[i]
		if bare(rows[i]) != bare(f.Row) || messages[i].Row != rows[i] {
			t.Fatalf("row %d: %+v, %+v, wanted %+v", i, rows[i], messages[i].Row, f.Row)
		}
		if !bytes.Equal(messages[i].Envelope, f.Envelope) || !bytes.Equal(envelopes[i], f.Envelope) {
			t.Fatalf("message %d: %q, %q, wanted %q", i, messages[i].Envelope, envelopes[i], f.Envelope)
		}
	}
}

// wholeRows counts the messages that are whole.
func wholeRows(t tb, rows []ScanResult, entries []entry) (n int) {
	t.Helper()
	for i := range rows {
		if rows[i].Err == nil {
			n++
			if !known(entries, &rows[i].Message) {
				t.Fatalf("message from nowhere: %+v", rows[i])
			}
		}
	}
	return n
}

// TestSalvage flips a bit in each third byte of a pack, with its footer and without its tables. All rows and messages
// are there but those whose place it is.
func TestSalvage(t *testing.T) {
	t.Parallel()
	entries, payloads, file := small(t)
	whole := open(t, put(t, file), damagedName)
	for at := 0; at < len(file); at += 3 * stride(5) {
		for _, end := range []int64{int64(len(file)), whole.foot.tables} {
			if int64(at) >= end {
				continue
			}
			where := part(t, whole, int64(at))
			name := fmt.Sprintf("byte %d of %d, %s", at, end, where)
			b := bytes.Clone(file[:end])
			b[at] ^= 1 << ((at*5 + at/8) % 8)
			p, rows, blobs := checkSalvaged(t, put(t, b))
			if p.Size() != end {
				t.Fatalf("%s: %d bytes", name, p.Size())
			}
			lost, left := len(entries)-wholeRows(t, rows, entries), len(payloads)-len(blobs)
			switch {
			case len(rows) != len(entries), lost > 0 && where != "messages", left > 0 && where != "payloads", left == len(payloads):
				t.Fatalf("%s: %d rows, %d messages lost, %d payloads", name, len(rows), lost, left)
			case lost > 0:
				n, _ := whole.find(func(s *segment) bool { return s.offset <= int64(at) })
				s, count, _ := whole.segment(n)
				if got := damagedMessages(p); int64(lost) != count || len(got) != 1 || got[0] != (span{s.offset, s.offset + s.packed}) {
					t.Fatalf("%s: %d messages lost of %d, in %v of %+v", name, lost, count, got, s)
				}
			}
			p.Close()
		}
	}
}

// damagedMessages returns where Verify finds damaged message frames.
func damagedMessages(p *Pack) (spans []span) {
	for d := range p.Verify() {
		if d.Part == "messages" {
			spans = append(spans, span{d.Offset, d.Offset + d.Size})
		}
	}
	return spans
}

// TestSalvageAll salvages packs of large messages and of many segments, with no tables, with damaged pages, and whole.
func TestSalvageAll(t *testing.T) {
	t.Parallel()
	large, payloads := sample(t)
	var many []entry
	for line := range 30 {
		for n := range 10 {
			many = append(many, entryOf(t, makeEnvelope(line, n*n, "text")))
		}
	}
	for name, c := range map[string]struct {
		entries  []entry
		payloads [][]byte
		most     int
	}{
		"large":    {large, payloads, FrameSize},
		"many":     {many, payloads[:3], 1},
		"nothing":  {nil, nil, FrameSize},
		"payloads": {nil, payloads, FrameSize},
	} {
		disk := crashfs.New()
		file, err := vfs.ReadFile(disk, buildFrames(t, disk, c.most, c.entries, c.payloads...), 10<<20)
		if err != nil {
			t.Fatal(err)
		}
		tables := int(footerOf(t, file).tables)
		files := map[string][]byte{"whole": file, "no tables": file[:tables], "half of the tables": file[:(tables+len(file))/2]}
		for at := tables; at < len(file); at += 400 {
			b := bytes.Clone(file)
			clear(b[at:min(at+400, len(b))])
			files[fmt.Sprintf("page at byte %d", at)] = b
		}
		for damage, b := range files {
			disk := put(t, b)
			p, rows, _ := checkSalvaged(t, disk)
			if len(rows) != len(c.entries) {
				t.Errorf("%s, %s: %d messages of %d", name, damage, len(rows), len(c.entries))
			}
			checkPack(t, p, c.entries, c.payloads)
			if damages := slices.Collect(p.Verify()); damage == "no tables" && len(damages) != 1 {
				t.Errorf("%s: %+v", name, damages)
			}
			p.Close()
		}
	}
}

// TestSalvageCut cuts a pack at each length. Each segment and group that is whole is there.
func TestSalvageCut(t *testing.T) {
	t.Parallel()
	entries, _, file := small(t)
	whole := open(t, put(t, file), damagedName)
	groups, _ := whole.payloadEntries()
	for n := 0; n < len(file); n += stride(7) {
		p, rows, blobs := checkSalvaged(t, put(t, file[:n]))
		p.Close()
		want, wantBlobs := 0, 0
		for k := range whole.foot.segments {
			if s, count, _ := whole.segment(k); int64(n) >= s.offset+s.packed {
				want += int(count)
			}
		}
		for _, g := range groups {
			if int64(n) >= g.offset+g.length {
				wantBlobs++
			}
		}
		if wholeRows(t, rows, entries) != want || len(blobs) != wantBlobs {
			t.Fatalf("%d bytes: %d messages, %d payloads, wanted %d, %d", n, len(rows), len(blobs), want, wantBlobs)
		}
	}
}

// TestSalvageBoth damages the rows of a segment and its messages, and a group: they are not there, the rest is.
func TestSalvageBoth(t *testing.T) {
	entries, payloads, file := small(t)
	whole := open(t, put(t, file), damagedName)
	s, count, err := whole.segment(1)
	if err != nil {
		t.Fatal(err)
	}
	groups, _ := whole.payloadEntries()
	file[s.offset+s.packed/2] ^= 1
	file[s.end()-1] ^= 1
	file[groups[0].offset+groups[0].length-1] ^= 1
	p, rows, blobs := checkSalvaged(t, put(t, file))
	if want := len(entries) - int(count); wholeRows(t, rows, entries) != want || len(rows) != want {
		t.Errorf("%d rows, wanted %d", len(rows), want)
	}
	if _, err := p.Lookup(s.line, s.position); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := p.Payload(groups[0].sum); !errors.Is(err, ErrNotFound) || len(blobs) == 0 || len(blobs) == len(payloads) {
		t.Error(err, len(blobs))
	}
}

// TestSalvageNext damages the rows of a segment and the messages of the next one: rows come from where they are whole.
func TestSalvageNext(t *testing.T) {
	entries, _, file := small(t)
	whole := open(t, put(t, file), damagedName)
	s, _, _ := whole.segment(0)
	next, count, _ := whole.segment(1)
	file[s.end()-1] ^= 1
	file[next.offset] ^= 1
	p, rows, _ := checkSalvaged(t, put(t, file))
	if n := wholeRows(t, rows, entries); len(rows) != len(entries) || int64(n) != int64(len(entries))-count {
		t.Errorf("%d rows, %d messages", len(rows), n)
	}
	if got := damagedMessages(p); len(got) != 1 || got[0] != (span{s.offset + s.packed, next.offset + next.packed}) {
		t.Error(got)
	}
}
