package archive

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"pgregory.net/rapid"
)

// rowsIn returns the rows of a pack for entries.
func rowsIn(t tb, p *Pack, entries []entry) (rows []Row) {
	t.Helper()
	for i := range entries {
		r, err := p.Lookup(entries[i].row.Line, entries[i].row.Position)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// TestReadMessages reads messages in any order, some of them several times.
func TestReadMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		disk := crashfs.New()
		most := rapid.SampledFrom([]int{1, 500, 2000, FrameSize}).Draw(t, "frame")
		p := open(t, disk, buildFrames(t, disk, most, entries))
		all := rowsIn(t, p, entries)
		var rows []Row
		var want []entry
		for range rapid.IntRange(0, 2*len(all)).Draw(t, "rows") {
			if len(all) == 0 {
				break
			}
			i := rapid.IntRange(0, len(all)-1).Draw(t, "row")
			rows, want = append(rows, all[i]), append(want, entries[i])
		}
		for range 2 { // from the file, then perhaps from the cache
			got := p.ReadMessages(rows)
			if len(got) != len(rows) {
				t.Fatalf("%d envelopes of %d rows", len(got), len(rows))
			}
			for i := range want {
				checkMessage(t, &want[i], got[i], nil)
			}
			for _, b := range got {
				clear(b) // the caller's
			}
		}
	})
}

// TestReadMessagesDamaged: of a damaged frame, and of rows of other packs, there is nothing; of all others everything.
func TestReadMessagesDamaged(t *testing.T) {
	entries, _, file := small(t)
	whole := open(t, put(t, file), damagedName)
	for n := range whole.foot.segments {
		s, count, err := whole.segment(n)
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(file)
		b[s.offset+s.packed/2] ^= 1
		p := open(t, put(t, b), damagedName)
		for i, got := range p.ReadMessages(rowsIn(t, p, entries)) {
			if lost := int64(i) >= s.first && int64(i) < s.first+count; lost {
				if got != nil {
					t.Errorf("segment %d, row %d: %q", n, i, got)
				}
				continue
			}
			checkMessage(t, &entries[i], got, nil)
		}
	}
	r := rowsIn(t, whole, entries)[0]
	rows := []Row{r, {}, r, r, r, r, r}
	rows[2].segment, rows[3].segment, rows[4].offset, rows[5].Size = 1<<32-1, 1, 1<<32-1, -1
	got := whole.ReadMessages(rows)
	for i := range rows {
		if nothing := i > 0 && i < len(rows)-1; nothing != (got[i] == nil) {
			t.Errorf("row %d: %q", i, got[i])
		}
		if b, err := whole.ReadMessage(rows[i]); (b == nil) != (got[i] == nil) || (b == nil) != errors.Is(err, ErrDamaged) {
			t.Errorf("row %d: %q alone, %v", i, b, err)
		}
	}
	if got := whole.ReadMessages(nil); len(got) != 0 {
		t.Error(got)
	}
}

// waitingFS has files whose reads below an offset wait until the test lets them go on.
type waitingFS struct {
	vfs.FS
	limit   int64
	arrived chan int64 // the offset of a read that waits
	proceed chan struct{}
	now     atomic.Int64 // reads that wait
}

type waitingFile struct {
	vfs.File
	fs *waitingFS
}

func (w *waitingFS) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := w.FS.OpenFile(name, flag)
	return &waitingFile{f, w}, err
}

func (f *waitingFile) ReadAt(b []byte, off int64) (int, error) {
	w := f.fs
	if off >= w.limit {
		return f.File.ReadAt(b, off)
	}
	w.now.Add(1)
	w.arrived <- off
	<-w.proceed
	w.now.Add(-1)
	return f.File.ReadAt(b, off)
}

// readAll reads the messages of rows, which are in the given number of segments. It lets a read go on when as many wait as
// are allowed at once, or all that are left. It returns how often each place was read, and how many reads waited at most.
func (w *waitingFS) readAll(p *Pack, rows []Row, segments int64) (envelopes [][]byte, times map[int64]int, most int64) {
	times = map[int64]int{}
	ended := make(chan [][]byte)
	go func() { ended <- p.ReadMessages(rows) }()
	for left, held := segments, 0; ; {
		select {
		case at := <-w.arrived:
			times[at]++
			held++
			left--
		case envelopes = <-ended:
			return envelopes, times, most
		}
		for most = max(most, w.now.Load()); held > 0 && (held == ahead || left <= 0); held-- {
			w.proceed <- struct{}{}
		}
	}
}

// TestReadMessagesOnce: each frame is read and decoded once, some at a time and no more than that.
func TestReadMessagesOnce(t *testing.T) {
	var entries []entry
	for n := range 40 {
		entries = append(entries, entryOf(t, makeEnvelope(1, n, strings.Repeat("text ", n))))
	}
	disk := crashfs.New()
	name := buildFrames(t, disk, 1000, entries)
	rows := rowsIn(t, open(t, disk, name), entries)
	rows = append(rows, rows...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	waiting := &waitingFS{FS: disk, arrived: make(chan int64), proceed: make(chan struct{})}
	p := open(t, waiting, name)
	waiting.limit = p.foot.tables
	defer func(n int) { ahead = n }(ahead)
	ahead = 3
	envelopes, times, most := waiting.readAll(p, rows, p.foot.segments)
	for i, b := range envelopes {
		if b == nil {
			t.Errorf("row %d is not there", i)
		}
	}
	if int64(len(times)) != p.foot.segments || p.foot.segments < 5 {
		t.Errorf("%d places of %d segments were read", len(times), p.foot.segments)
	}
	for at, n := range times {
		if n != 1 {
			t.Errorf("the frame at byte %d was read %d times", at, n)
		}
	}
	if most != int64(ahead) {
		t.Errorf("%d frames at once, want %d", most, ahead)
	}
	// What was read last is there still.
	for i := range 2 {
		if b, times, _ := waiting.readAll(p, rows[:1], 1); b[0] == nil || i == 1 && len(times) > 0 {
			t.Errorf("%q, read %v", b, times)
		}
	}
}

// TestOtherRows reads messages by rows that are not this pack's.
func TestOtherRows(t *testing.T) {
	disk := crashfs.New()
	p := open(t, disk, build(t, disk, []entry{entryOf(t, makeEnvelope(1, 1, "one")), entryOf(t, makeEnvelope(1, 2, "two"))}))
	for name, change := range map[string]func(*Row){
		"sum": func(r *Row) { r.Sum++ }, "size": func(r *Row) { r.Size-- }, "large": func(r *Row) { r.Size = 1 << 62 },
		"negative": func(r *Row) { r.Size = -1 }, "offset": func(r *Row) { r.offset = 1 }, "segment": func(r *Row) { r.segment = 9 },
	} {
		r, err := p.Lookup(lineID(1), 1)
		if err != nil {
			t.Fatal(err)
		}
		change(&r)
		if b, err := p.ReadMessage(r); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestKeptPlace reads messages by rows that were made anew from what a reader kept of them.
func TestKeptPlace(t *testing.T) {
	entries, _ := sample(t)
	disk := crashfs.New()
	p := open(t, disk, build(t, disk, entries))
	places := map[Place]bool{{}: true} // the zero value is the place of the first message
	for i := range entries {
		r, err := p.Lookup(entries[i].row.Line, entries[i].row.Position)
		if err != nil || places[r.Place] != (i == 0) {
			t.Fatal(r, err)
		}
		places[r.Place] = true
		b, err := p.ReadMessage(Row{Line: r.Line, Position: r.Position, Size: r.Size, Sum: r.Sum, Place: r.Place})
		checkMessage(t, &entries[i], b, err)
	}
}

// TestFrameInUse: the memory of a frame serves no other frame while somebody uses it, not even after the pack closed.
func TestFrameInUse(t *testing.T) {
	entries, _, file := small(t)
	p := open(t, put(t, file), damagedName)
	rows := rowsIn(t, p, entries)
	s, count, err := p.segment(0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.frame(0, &s)
	if err != nil {
		t.Fatal(err)
	}
	others := rows[count:]
	if p.foot.segments < 4 {
		t.Fatalf("%d segments are too few", p.foot.segments)
	}
	p.ReadMessages(others)
	if _, kept := p.frames.get(0); kept {
		t.Fatal("it was not evicted")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, put(t, file), damagedName).ReadMessages(others)
	for i := range rows[:count] {
		b, err := f.own(&rows[i])
		checkMessage(t, &entries[i], b, err)
	}
	f.release()
}
