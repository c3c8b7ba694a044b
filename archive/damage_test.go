package archive

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

const damagedName = "1-40-00000001.zst"

// file is the sample as a file.
func file(t tb, o Options) (*history, []byte) {
	t.Helper()
	disk := crashfs.New()
	h := sample()
	b, err := vfs.ReadFile(disk, h.write(t, disk, o), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return h, b
}

func put(t tb, content []byte) vfs.FS {
	t.Helper()
	disk := crashfs.New()
	if err := vfs.WriteNew(disk, damagedName, content); err != nil {
		t.Fatal(err)
	}
	return disk
}

// cost is what a damaged segment does not give back any more.
type cost struct{ rows, messages, others, state int }

// costOf reads everything there is in a damaged segment. Whatever it gives back has to be what went in; an error has to be
// of damage.
func costOf(t *testing.T, s *Segment, h *history) (c cost) {
	t.Helper()
	damage := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("error of another kind: %v", err)
		}
	}
	for _, e := range h.entries {
		r, err := s.Lookup(e.row.Line, e.row.Position)
		if err != nil && !errors.Is(err, ErrNotFound) {
			damage(err)
		}
		if err != nil {
			c.rows++
			continue
		}
		want := e.row
		if r.Seq == 0 { // made from the message
			want.Seq, want.More, want.Replaces = 0, false, false
		}
		if bare(r) != want {
			t.Fatalf("%+v, wanted %+v", r, want)
		}
		if r.Gone != Here {
			continue
		}
		if b, err := s.ReadMessage(r); err != nil {
			damage(err)
			c.messages++
		} else if !bytes.Equal(b, e.envelope) {
			t.Fatalf("other bytes: %q", b)
		}
		for found, err := range s.LookupID(e.row.ID) {
			if err != nil {
				damage(err)
			} else if bare(found) != want {
				t.Fatalf("by id: %+v", found)
			}
		}
	}
	seen := 0
	for o, err := range s.Others(0) {
		switch {
		case err != nil:
			damage(err)
		case seen == len(h.others) || !equalOther(&o, &h.others[seen]):
			t.Fatalf("record from nowhere: %+v", o)
		default:
			seen++
		}
	}
	c.others = len(h.others) - seen
	if state, err := s.State(); err != nil {
		damage(err)
		c.state++
	} else if !bytes.Equal(state, h.state) {
		t.Fatalf("other state: %q", state)
	}
	return c
}

// TestDamagedRows: the rows of a block are made from its messages if these are as they were written, every byte.
func TestDamagedRows(t *testing.T) {
	for _, o := range []Options{{Frame: 600}, {With: NewCompressor(Fast, 1), Frame: 600}} {
		h, content := file(t, o)
		b, _, err := open(t, put(t, content), damagedName).block(0)
		if err != nil {
			t.Fatal(err)
		}
		content[b.end()-1]++
		if c := costOf(t, open(t, put(t, content), damagedName), h); c != (cost{}) {
			t.Errorf("the rows cost %+v", c)
		}
		lost := 0
		for at := b.offset; at < b.offset+b.packed; at++ {
			content[at] ^= 0x15
			for _, f := range []func(vfs.FS, string) (*Segment, error){Open, Salvage} {
				s, err := f(put(t, content), damagedName)
				if err != nil {
					t.Fatal(err)
				}
				lost += costOf(t, s, h).rows
				_ = s.Close()
			}
			content[at] ^= 0x15
		}
		if lost == 0 {
			t.Error("no damage cost a row")
		}
	}
}

// TestDamage damages each byte, and cuts the file at each byte: what is given back is right, a check says what is wrong,
// and the damage costs one part: the messages of a block, a frame of records, or the state. Tables
// cost nothing: they are made anew.
func TestDamage(t *testing.T) {
	for _, o := range []Options{{Frame: 600}, {With: NewCompressor(Fast, 1), Frame: 600}} {
		h, whole := file(t, o)
		largest := 0
		s := open(t, put(t, whole), damagedName)
		for n := range s.tables[directory].count {
			_, count, err := s.block(n)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, int(count))
		}
		try := func(what string, at int, content []byte, cut bool) {
			t.Helper()
			disk := put(t, content)
			s, err := Open(disk, damagedName)
			if err == nil {
				c := costOf(t, s, h)
				damage := 0
				for range s.Verify() {
					damage++
				}
				if damage == 0 {
					t.Errorf("%s %d: nothing is reported", what, at)
				}
				if c != (cost{}) && damage == 0 {
					t.Errorf("%s %d: silent loss %+v", what, at, c)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatalf("%s %d: %v", what, at, err)
			}
			s, err = Salvage(disk, damagedName)
			if errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) && cut {
				return
			}
			if err != nil {
				t.Fatalf("%s %d: salvage: %v", what, at, err)
			}
			defer s.Close()
			c := costOf(t, s, h)
			parts := min(c.rows+c.messages, 1) + min(c.others, 1) + min(c.state, 1)
			if !cut && (parts > 1 || c.rows+c.messages > largest) {
				t.Errorf("%s %d: the damage cost %+v", what, at, c)
			}
		}
		state := int(s.foot.state)
		stride := 1
		if testing.Short() {
			stride = 11
		}
		for at := 0; at < len(whole); at += stride {
			content := bytes.Clone(whole)
			content[at] ^= 0x15
			// Without the state nothing says where the segment belongs, unless the footer is whole.
			try("byte", at, content, at >= state && at < int(s.stateEnd))
		}
		for at := 0; at < len(whole); at += stride {
			try("cut at", at, whole[:at], true)
		}
		zeroed := bytes.Clone(whole)
		clear(zeroed[len(whole)/3 : len(whole)/2])
		try("zeros from", len(whole)/3, zeroed, true)
	}
}

// TestSegmentInRecord: a segment that a record holds is not taken for a part of the one around it.
func TestSegmentInRecord(t *testing.T) {
	_, inner := file(t, Options{Frame: 600})
	h := sample()
	h.others = append(h.others, Other{35, "change", false, inner})
	disk := crashfs.New()
	name := h.write(t, disk, Options{Frame: 600})
	outer, err := vfs.ReadFile(disk, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(outer, inner)
	if at < 0 {
		t.Fatal("the record is not stored as it is")
	}
	for _, damage := range []int{at - 20, at + 3, len(outer) - 9} {
		content := bytes.Clone(outer)
		content[damage] ^= 0x15
		s, err := Salvage(put(t, content), damagedName)
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != int64(len(h.entries)) {
			t.Errorf("byte %d: %d messages, wanted %d", damage, s.Len(), len(h.entries))
		}
		costOf(t, s, h)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzOpen reads anything as a segment: no panic, no memory beyond what the file can hold, only errors of damage.
func FuzzOpen(f *testing.F) {
	for _, o := range []Options{{Frame: 600}, {With: NewCompressor(Fast, 1)}} {
		_, whole := file(f, o)
		f.Add(whole)
		f.Add(whole[:len(whole)/2])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		disk := put(t, content)
		for _, from := range []func(vfs.FS, string) (*Segment, error){Open, Salvage} {
			s, err := from(disk, damagedName)
			if err != nil {
				if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
					t.Fatal(err)
				}
				continue
			}
			for range s.Verify() {
			}
			spans, _ := s.Spans()
			for _, span := range spans[:min(len(spans), 100)] {
				for r, err := range s.Rows(span.Line, span.From, span.To) {
					if err == nil {
						_, _ = s.ReadMessage(r)
						for range s.LookupID(r.ID) {
						}
					}
				}
			}
			for range s.Others(0) {
			}
			_, _ = s.State()
			_ = s.Close()
		}
	})
}
