package archive

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// small is a pack of some kilobytes with several segments and groups.
func small(t tb) (entries []entry, payloads [][]byte, file []byte) {
	for n := range 9 {
		entries = append(entries, entryOf(t, makeEnvelope(1, n, noise(40, uint64(n)))))
	}
	entries = append(entries, entryOf(t, makeEnvelope(2, 3, "x")), entryOf(t, makeEnvelope(2, 7, "y")))
	payloads = [][]byte{[]byte(noise(300, 1)), []byte(noise(500, 2)), []byte("a short one"), {}}
	disk := crashfs.New()
	file, err := vfs.ReadFile(disk, buildFrames(t, disk, 800, entries, payloads...), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return entries, payloads, file
}

const damagedName = "damaged.zst"

func put(t tb, file []byte) vfs.FS {
	t.Helper()
	disk := crashfs.New()
	if err := vfs.WriteNew(disk, damagedName, file); err != nil {
		t.Fatal(err)
	}
	return disk
}

// cost is what a damaged pack does not give back any more.
type cost struct {
	lookups, messages, byID, ranged, payloads int
	segments                                  map[uint32]bool // of the messages that are lost
}

// costOf reads everything there is in a damaged pack. Whatever it gives back has to be what went in; an error has to be
// of damage.
func costOf(t *testing.T, p *Pack, entries []entry, payloads [][]byte) (c cost) {
	t.Helper()
	c.segments = map[uint32]bool{}
	damage := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("error of another kind: %v", err)
		}
	}
	for i := range entries {
		e := &entries[i]
		found := false
		for r, err := range p.LookupID(e.row.ID) {
			if err != nil {
				damage(err)
			} else if bare(r) != bare(e.row) {
				t.Fatalf("by id: %+v", r)
			}
			found = found || err == nil
		}
		if !found {
			c.byID++
		}
		r, err := p.Lookup(e.row.Line, e.row.Position)
		if err != nil {
			damage(err)
			c.lookups++
			continue
		}
		if bare(r) != bare(e.row) {
			t.Fatalf("%+v", r)
		}
		if b, err := p.ReadMessage(r); err != nil {
			damage(err)
			c.messages++
			c.segments[r.segment] = true
		} else if !bytes.Equal(b, e.envelope) {
			t.Fatalf("other bytes: %q", b)
		}
	}
	seen := 0
	for _, line := range []uuid.UUID{lineID(1), lineID(2)} {
		for m, err := range eachMessage(p, line, 0, 1<<40) {
			switch {
			case err != nil:
				damage(err)
			case !known(entries, &m):
				t.Fatalf("message from nowhere: %+v", m)
			default:
				seen++
			}
		}
	}
	c.ranged = len(entries) - seen
	for _, b := range payloads {
		got, err := p.Payload(SumOf(b))
		if err != nil {
			damage(err)
			c.payloads++
		} else if !bytes.Equal(got, b) {
			t.Fatalf("other payload: %q", got)
		}
	}
	return c
}

func known(entries []entry, m *Message) bool {
	for i := range entries {
		if bare(entries[i].row) == bare(m.Row) && bytes.Equal(entries[i].envelope, m.Envelope) {
			return true
		}
	}
	return false
}

// part says what lies at each byte of a pack.
func part(t *testing.T, p *Pack, at int64) string {
	t.Helper()
	for n := range p.foot.segments {
		s, _, err := p.segment(n)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case at >= s.offset && at < s.offset+s.packed:
			return "messages"
		case at >= s.offset && at < s.end():
			return "rows"
		}
	}
	groups, _ := p.payloadEntries()
	for _, g := range groups {
		if at >= g.offset && at < g.offset+g.length {
			return "payloads"
		}
	}
	if at < skipHead {
		return "head"
	}
	if at >= p.foot.size-footerSize {
		return "footer"
	}
	return "tables"
}

// TestBitFlips flips a bit in each byte of a pack. What is read is right or known to be damaged; the damage is found;
// it costs the messages of one frame, or the payloads of one group; and a scan finds everything else.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	entries, payloads, file := small(t)
	whole := open(t, put(t, file), damagedName)
	if whole.foot.segments < 4 {
		t.Fatalf("%d segments", whole.foot.segments)
	}
	messages := len(entries)
	times := map[string]int{}
	for at := 0; at < len(file); at += stride(7) {
		where := part(t, whole, int64(at))
		bit := (at*5 + at/8) % 8
		b := bytes.Clone(file)
		b[at] ^= 1 << bit
		disk := put(t, b)
		name := fmt.Sprintf("byte %d, bit %d, %s", at, bit, where)
		found, blobs := scanned(t, disk, entries)
		p, err := Open(disk, damagedName)
		if where == "footer" {
			if err == nil || !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: %v", name, err)
			}
			if found != messages || blobs != len(payloads) {
				t.Fatalf("%s: scan finds %d messages, %d payloads", name, found, blobs)
			}
			times[where]++
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := costOf(t, p, entries, payloads)
		damages, told := 0, 0
		for d := range p.Verify() {
			damages++
			told += len(d.Rows) + len(d.Payloads)
		}
		p.Close()
		if where != "tables" && told != c.messages+c.payloads {
			t.Fatalf("%s: told of %d messages and payloads: %+v", name, told, c)
		}
		if damages == 0 {
			// A bit that no decoder looks at: padding within a frame.
			if where != "messages" && where != "payloads" || found != messages || blobs != len(payloads) ||
				c.lookups+c.messages+c.byID+c.ranged+c.payloads > 0 {
				t.Fatalf("%s: not found, but %+v", name, c)
			}
			times["harmless"]++
			continue
		}
		times[where]++
		ok := true
		switch where {
		case "messages":
			ok = len(c.segments) <= 1 && c.lookups == 0 && c.byID == 0 && c.payloads == 0 && c.ranged == c.messages &&
				found == messages-c.messages && blobs == len(payloads)
		case "payloads":
			ok = c.messages+c.lookups+c.byID+c.ranged == 0 && c.payloads < len(payloads) && found == messages && blobs+c.payloads >= len(payloads)
		case "rows", "head": // rows are in the messages too
			ok = c.messages+c.lookups+c.byID+c.ranged+c.payloads == 0 && found == messages && blobs == len(payloads)
		case "tables":
			ok = found == messages && blobs == len(payloads)
		}
		if !ok {
			t.Fatalf("%s: %+v; scan finds %d messages, %d payloads", name, c, found, blobs)
		}
	}
	t.Log(times)
	if 50*times["harmless"] > times["messages"] {
		t.Errorf("too many flips do no harm: %v", times)
	}
}

// TestRowsAndMessages damages the rows of a segment: they come from its messages. With these damaged as well the
// segment is lost, and nothing else.
func TestRowsAndMessages(t *testing.T) {
	entries, payloads, file := small(t)
	s, count, err := open(t, put(t, file), damagedName).segment(1)
	if err != nil {
		t.Fatal(err)
	}
	file[s.offset+s.packed+skipHead+2] ^= 4
	checkPack(t, open(t, put(t, file), damagedName), entries, payloads)
	file[s.offset+s.packed/2] ^= 4
	p := open(t, put(t, file), damagedName)
	from, to := int(s.first), int(s.first+count)
	for i := range entries {
		_, err := p.Lookup(entries[i].row.Line, entries[i].row.Position)
		if damaged := i >= from && i < to; damaged != errors.Is(err, ErrDamaged) {
			t.Errorf("row %d: %v", i, err)
		}
	}
	got, errs := 0, 0
	for r, err := range p.Rows(lineID(1), 0, 1<<40) {
		switch {
		case err == nil:
			got++
		case !errors.Is(err, ErrDamaged) || r != Row{}:
			t.Error(r, err)
		default:
			errs++
		}
	}
	if want := len(entries) - 2 - int(count); got != want || errs != 1 {
		t.Errorf("%d rows, wanted %d, and %d errors", got, want, errs)
	}
}

// TestTruncated cuts a pack at each length, and puts a byte behind it. Neither is opened; a scan finds the segments
// that are whole.
func TestTruncated(t *testing.T) {
	entries, _, file := small(t)
	whole := open(t, put(t, file), damagedName)
	before := 0
	for n := range len(file) {
		disk := put(t, file[:n])
		if _, err := Open(disk, damagedName); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		found, _ := scanned(t, disk, entries)
		want := 0
		for k := range whole.foot.segments {
			if s, count, _ := whole.segment(k); int64(n) >= s.offset+s.packed {
				want += int(count)
			}
		}
		if found < want || found < before {
			t.Fatalf("%d bytes: %d messages, wanted %d", n, found, want)
		}
		before = found
	}
	disk := put(t, append(bytes.Clone(file), 0))
	if _, err := Open(disk, damagedName); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
}

// TestVerifyReadsAgain damages a file behind the back of an open pack that has read it.
func TestVerifyReadsAgain(t *testing.T) {
	entries, payloads, file := small(t)
	disk := put(t, file)
	p := open(t, disk, damagedName)
	checkPack(t, p, entries, payloads)
	f, err := disk.OpenFile(damagedName, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{skipHead + 30, p.directory.at, p.payloads.at} {
		if _, err := f.WriteAt([]byte{file[at] ^ 1}, at); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range p.Verify() {
			n++
		}
		if n == 0 {
			t.Errorf("byte %d: not found", at)
		}
		if _, err := f.WriteAt(file[at:at+1], at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOther opens what is no pack.
func TestOther(t *testing.T) {
	_, _, file := small(t)
	later := bytes.Clone(file)
	at := len(later) - sumSize - 1
	later[at]++
	foot := later[len(later)-footerSize : len(later)-sumSize]
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"empty": {nil, ErrDamaged}, "short": {make([]byte, 20), ErrDamaged}, "zeros": {make([]byte, 4096), ErrDamaged},
		"version 2": {appendSum(bytes.Clone(later[:len(later)-sumSize]), len(later)-len(foot)-sumSize), ErrVersion},
	} {
		if _, err := Open(put(t, c.file), damagedName); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	disk := crashfs.New()
	if _, err := Open(disk, damagedName); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := disk.Mkdir(damagedName); err != nil {
		t.Fatal(err)
	}
	if p, err := Open(disk, damagedName); err == nil {
		t.Errorf("a folder was opened: %v", p)
	}
}

// TestCovered: what lies between the parts of a pack, or in two, is damage.
func TestCovered(t *testing.T) {
	for name, c := range map[string]struct {
		spans []span
		want  bool
	}{
		"whole":   {[]span{{0, 16}, {40, 60}, {16, 40}}, true},
		"gap":     {[]span{{0, 16}, {40, 60}, {16, 39}}, false},
		"overlap": {[]span{{0, 16}, {40, 60}, {16, 41}}, false},
	} {
		if err := covered(c.spans); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
