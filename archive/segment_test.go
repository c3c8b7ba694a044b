package archive

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/unzstd"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// draw makes the records of one segment: messages of several lines with holes, versions of messages of an earlier
// history, and other records.
func draw(t *rapid.T, from uint64, before *history) *history {
	h := &history{from: from, to: from + uint64(rapid.IntRange(0, 60).Draw(t, "records"))}
	h.state = []byte(noise(rapid.IntRange(0, 300).Draw(t, "state"), from))
	next := map[int]int{}
	if before != nil {
		for _, e := range before.entries {
			line := int(e.row.Line[1])
			next[line] = max(next[line], int(e.row.Position)+1)
		}
	}
	for seq := from; seq <= h.to; seq++ {
		line := rapid.IntRange(0, 3).Draw(t, "line")
		length := rapid.SampledFrom([]int{0, 20, 200, 900}).Draw(t, "length")
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0:
			h.others = append(h.others, Other{seq, "change", seq%3 == 1, []byte(noise(length, seq))})
		case kind == 1 && next[line] > 0:
			n := rapid.IntRange(0, next[line]-1).Draw(t, "position")
			e := makeEntry(line, n, seq, noise(length, seq))
			e.row.Replaces = true
			if i := slices.IndexFunc(h.entries, func(o entry) bool { return o.row.compare(e.row.Line, e.row.Position) == 0 }); i >= 0 {
				h.others = append(h.others, Superseded(&h.entries[i].row))
				h.entries[i] = e
			} else {
				h.entries = append(h.entries, e)
			}
		default:
			e := makeEntry(line, next[line], seq, noise(length, seq))
			if kind == 3 {
				e = entry{row: Row{Line: e.row.Line, Position: e.row.Position, Seq: seq, ID: e.row.ID, At: e.row.At, Gone: Erased}}
			}
			h.entries = append(h.entries, e)
			next[line]++
		}
	}
	slices.SortFunc(h.others, func(a, b Other) int { return int(a.Seq) - int(b.Seq) })
	return h
}

func drawOptions(t *rapid.T) Options {
	level := rapid.SampledFrom([]Level{Store, Fast, Best}).Draw(t, "level")
	return Options{With: NewCompressor(level, 1), Frame: rapid.SampledFrom([]int{1, 500, 2000, FrameSize}).Draw(t, "frame")}
}

// TestAgainstModel writes random histories as segments, some after others, compares all that can be asked with what went
// in, and makes one segment of them, in one or in two steps.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := crashfs.New()
		var all *history
		var segments []*Segment
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			from := uint64(1)
			if all != nil {
				from = all.to + 1
			}
			h := draw(t, from, all)
			s := open(t, disk, h.write(t, disk, drawOptions(t)))
			h.check(t, s)
			segments = append(segments, s)
			if all == nil {
				all = h
			} else {
				all = all.then(h)
			}
		}
		if len(segments) == 1 {
			return
		}
		if k := rapid.IntRange(1, len(segments)-1).Draw(t, "first"); k > 1 {
			segments = append([]*Segment{rewritten(t, disk, segments[:k], &Rewrite{}, drawOptions(t))}, segments[k:]...)
		}
		all.check(t, rewritten(t, disk, segments, &Rewrite{}, drawOptions(t)))
	})
}

func rewritten(t tb, fsys vfs.FS, in []*Segment, x *Rewrite, o Options) *Segment {
	t.Helper()
	w, err := Create(fsys, contextID, o)
	if err == nil {
		err = x.Run(w, in)
	}
	if err != nil {
		t.Fatal(err)
	}
	from, to := in[0].From(), in[len(in)-1].To()
	state, err := in[len(in)-1].State()
	if err != nil {
		t.Fatal(err)
	}
	name, _, err := w.Commit(from, to, state)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, fsys, name)
}

// sample is a history with all kinds of records, in several blocks.
func sample() *history {
	h := &history{from: 1, to: 40, state: []byte(`{"some":"state"}`), joints: []uint64{10}}
	for n := range 20 {
		h.entries = append(h.entries, makeEntry(1, n, uint64(n+1), noise(60, uint64(n))))
	}
	h.entries = append(h.entries, makeEntry(2, 3, 30, "x"), makeEntry(2, 7, 32, "y"))
	h.entries[4].row = Row{Line: lineID(1), Position: 4, Seq: 5, ID: messageID(1, 4), At: h.entries[4].row.At, Gone: Erased}
	h.others = []Other{{21, "metadata", false, []byte(`{"title":"one"}`)}, {22, "change", true, []byte(`{}`)}, {31, "trim", false, nil}}
	return h
}

// TestErase: a rewrite erases and removes messages, and nothing else changes. No byte of them is left.
func TestErase(t *testing.T) {
	const canary = "what nobody may read any more"
	for _, level := range []Level{Store, Fast} {
		disk := crashfs.New()
		h := sample()
		for i, n := range []int{6, 13} {
			h.entries[n] = makeEntry(1, n, uint64(n+1), canary+fmt.Sprint(i))
		}
		o := Options{With: NewCompressor(level, 1), Frame: 600}
		s := open(t, disk, h.write(t, disk, o))
		erased := rewritten(t, disk, []*Segment{s}, &Rewrite{
			Fate: func(r *Row) Fate {
				switch {
				case r.Line == lineID(1) && r.Position == 6:
					return Erase
				case r.Line == lineID(1) && r.Position >= 12:
					return Remove
				}
				return Keep
			},
			Other: func(o *Other) bool { return o.Kind != "trim" },
		}, o)
		h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return e.row.Line == lineID(1) && e.row.Position >= 12 })
		gone := &h.entries[6].row
		gone.Gone, gone.Size, gone.Sum, gone.Payloads = Erased, 0, 0, 0
		h.others = h.others[:2]
		h.check(t, erased)
		file, err := vfs.ReadFile(disk, erased.name, 1<<20)
		if err != nil || bytes.Contains(file, []byte("nobody may")) {
			t.Errorf("level %d: the message is still there: %v", level, err)
		}
	}
}

// TestRewriteOfDamage: a message whose frame is damaged comes from another copy, or is lost and said to be.
func TestRewriteOfDamage(t *testing.T) {
	disk := crashfs.New()
	h := sample()
	o := Options{Frame: 600}
	name := h.write(t, disk, o)
	file, err := vfs.ReadFile(disk, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, h.entries[8].envelope)
	file[at+30]++
	if err := disk.Replace(name, file); err != nil {
		t.Fatal(err)
	}
	w, err := Create(disk, contextID, Options{Frame: 4000})
	if err != nil {
		t.Fatal(err)
	}
	x := &Rewrite{Fate: func(r *Row) Fate {
		if r.ID == h.entries[8].row.ID {
			return Keep
		}
		return Erase
	}}
	if err := x.Run(w, []*Segment{open(t, disk, name)}); !errors.Is(err, ErrDamaged) {
		t.Errorf("without another copy: %v", err)
	}
	w.Abort()
	none := func(*Row) []byte { return nil }
	for _, rescue := range []func(*Row) []byte{none, func(r *Row) []byte { return h.entries[r.Position].envelope }} {
		x := &Rewrite{Rescue: rescue, Fate: func(*Row) Fate { return Keep }}
		s := rewritten(t, disk, []*Segment{open(t, disk, name)}, x, Options{Frame: 600}) // the other frames are copied
		want := sample()
		if rescue(&want.entries[8].row) == nil {
			r := &want.entries[8].row
			r.Gone, r.Size, r.Sum, r.Payloads = Lost, 0, 0, 0
		}
		want.check(t, s)
		if err := disk.Replace(name, file); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOrder: what does not come in order is rejected, and changes nothing.
func TestOrder(t *testing.T) {
	disk := crashfs.New()
	w, err := Create(disk, contextID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := makeEntry(1, 1, 1, "a"), makeEntry(1, 2, 2, "b")
	for _, step := range []struct {
		do   func() error
		want error
	}{
		{func() error { return w.Add(a.row, a.envelope) }, nil},
		{func() error { return w.Add(a.row, a.envelope) }, ErrOrder},
		{func() error { return w.Add(b.row, append(bytes.Clone(b.envelope), "\nmore"...)) }, errAny},
		{func() error { return w.Add(b.row, b.envelope) }, nil},
		{func() error { return w.Add(a.row, a.envelope) }, ErrOrder},
		{func() error { return w.AddOther(Other{Seq: 3}) }, nil},
		{func() error { return w.AddOther(Other{Seq: 3}) }, ErrOrder},
	} {
		if err := step.do(); (err == nil) != (step.want == nil) || step.want != errAny && !errors.Is(err, step.want) {
			t.Errorf("%v, wanted %v", err, step.want)
		}
	}
	h := &history{from: 1, to: 3, entries: []entry{a, b}, others: []Other{{Seq: 3}}}
	h.check(t, open(t, disk, h.commit(t, disk, w)))
	if w, err = Create(disk, contextID, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Commit(spotAt(3), spotAt(3), nil); !errors.Is(err, ErrOrder) {
		t.Errorf("a segment without records: %v", err)
	}
}

var errAny = errors.New("any error")

// TestNames: each name has one spelling.
func TestNames(t *testing.T) {
	for name, want := range map[string]Name{
		"1-250-9f3a01bc.zst": {1, 250, 0x9f3a01bc, 0}, "7-7-00000001.zst": {7, 7, 1, 0}, "7-7-00000001-12.zst": {7, 7, 1, 12},
	} {
		if n, ok := ParseName(name); !ok || n != want || n.File() != name {
			t.Errorf("%s is %+v, %v", name, n, ok)
		}
	}
	for _, name := range []string{
		"", "1-250.zst", "0-3-00000000.zst", "3-2-00000000.zst", "01-2-00000000.zst", "1-2-0000000A.zst", "1-2-1.zst", "1-2-00000000",
		"1-2-000000000.zst", "1-2-00000000-0.zst", "1-2-00000000-01.zst", "1-2-00000000-1-1.zst",
		"+1-2-00000000.zst", "1-2-00000000.zst.zst", "-1-2-00000000.zst", "1-99999999999999999999-00000000.zst", "../1-2-00000000.zst",
	} {
		if n, ok := ParseName(name); ok {
			t.Errorf("%q is %+v", name, n)
		}
	}
}

// TestZstdcat: the tool of the format prints the messages, whatever the level.
func TestZstdcat(t *testing.T) {
	zstdcat, err := exec.LookPath("zstdcat")
	if err != nil {
		t.Skip("zstdcat is not installed")
	}
	for _, level := range []Level{Store, Fast, Best} {
		disk := crashfs.New()
		h := sample()
		large := makeEntry(3, 0, 35, noise(3*maxBlock+5, 8))
		h.entries = append(h.entries, large)
		file, err := vfs.ReadFile(disk, h.write(t, disk, Options{With: NewCompressor(level, 1), Frame: 600}), 1<<22)
		if err != nil {
			t.Fatal(err)
		}
		path := t.TempDir() + "/s.zst"
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(zstdcat, path).Output()
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, e := range sorted(h.entries) {
			if e.envelope != nil && e.row.Gone == Here {
				want.Write(append(e.envelope, '\n'))
			}
		}
		if string(out) != want.String() {
			t.Errorf("level %d: %d bytes, wanted %d", level, len(out), want.Len())
		}
	}
}

// TestLargeMessages: a segment keeps the limits of its frames: a message above them stands alone.
func TestLargeMessages(t *testing.T) {
	disk := crashfs.New()
	h := &history{from: 1, to: 9}
	for n, size := range []int{10, FrameSize - 100, FrameSize + 100, 20, 3 * FrameSize, unzstd.MaxWindow + 1} {
		h.entries = append(h.entries, makeEntry(1, n, uint64(n+1), noise(size, uint64(n))))
	}
	for _, level := range []Level{Store, Fast} {
		s := open(t, disk, h.write(t, disk, Options{With: NewCompressor(level, 1)}))
		h.check(t, s)
		for n := range s.tables[directory].count {
			b, count, err := s.block(n)
			if err != nil || b.content > FrameSize && count > 1 {
				t.Errorf("block %d has %d messages in %d bytes, %v", n, count, b.content, err)
			}
		}
	}
}

// TestNotFound: an id or position that is not there is not found, next to each that is.
func TestNotFound(t *testing.T) {
	disk := crashfs.New()
	h := sample()
	s := open(t, disk, h.write(t, disk, Options{Frame: 300}))
	for _, line := range []int{0, 1, 2, 3} {
		for position := int64(-1); position < 25; position++ {
			there := slices.ContainsFunc(h.entries, func(e entry) bool { return e.row.compare(lineID(line), position) == 0 })
			if _, err := s.Lookup(lineID(line), position); (err == nil) != there || err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("line %d, position %d: %v", line, position, err)
			}
		}
	}
	for _, id := range []uuid.UUID{{}, messageID(9, 9), {15: 1}} {
		for r, err := range s.LookupID(id) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
