package archive

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/unzstd"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestAgainstModel packs random messages of random lines with holes, ids that lines share and payloads, in frames of
// random size, and compares all that can be asked with the list of what went in.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		var payloads [][]byte
		for i := range rapid.IntRange(0, 6).Draw(t, "payloads") {
			payloads = append(payloads, []byte(noise(rapid.IntRange(0, 3000).Draw(t, "size"), uint64(i))))
		}
		disk := crashfs.New()
		most := rapid.SampledFrom([]int{1, 500, 2000, FrameSize}).Draw(t, "frame")
		name := buildFrames(t, disk, most, entries, payloads...)
		p := open(t, disk, name)
		checkPack(t, p, entries, payloads)
		for range 10 {
			line := lineID(rapid.IntRange(0, 5).Draw(t, "line"))
			from := rapid.Int64Range(-2, 120).Draw(t, "from")
			checkRange(t, p, entries, line, from, from+rapid.Int64Range(-1, 60).Draw(t, "length"))
			checkMissing(t, p, entries, line, from)
		}
		checkRuns(t, p, entries)
		checkScan(t, disk, name, entries, payloads)
		for d := range p.Verify() {
			t.Fatalf("%+v", d)
		}
	})
}

func drawEntries(t *rapid.T) (entries []entry) {
	lines := rapid.IntRange(0, 4).Draw(t, "lines")
	for line := range lines {
		n := rapid.IntRange(0, 100).Draw(t, "first")
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			n += 1 + rapid.SampledFrom([]int{0, 0, 0, 0, 5}).Draw(t, "hole")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0: // another line may have this id too
				e := message.Envelope{ID: messageID(0, n), Line: lineID(line), Position: int64(n), Body: []byte(`{}`),
					StoredAt: epoch.Add(-1 * 1e9 * 86400).Add(1)}
				entries = append(entries, entryOf(t, e.AppendTo(nil)))
			default:
				entries = append(entries, entryOf(t, makeEnvelope(line, n, noise(rapid.IntRange(0, 400).Draw(t, "length"), uint64(n)))))
			}
		}
	}
	return entries
}

func checkMissing(t tb, p *Pack, entries []entry, line uuid.UUID, position int64) {
	t.Helper()
	_, err := p.Lookup(line, position)
	there := false
	for i := range entries {
		there = there || entries[i].row.Line == line && entries[i].row.Position == position
	}
	if there != (err == nil) || err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatalf("line %s, position %d: %v", line, position, err)
	}
	for r := range p.LookupID(messageID(99, int(position))) {
		t.Fatalf("an id that is not there: %+v", r)
	}
	if ok, err := p.HasPayload(SumOf(fmt.Appendf(nil, "no payload is like this: %d", position))); ok || err != nil {
		t.Fatal(ok, err)
	}
}

func checkRuns(t tb, p *Pack, entries []entry) {
	t.Helper()
	i := 0
	var last Run
	for r, err := range p.Runs() {
		if err != nil || r.From >= r.To || r.Line == last.Line && r.From <= last.To {
			t.Fatalf("%+v behind %+v: %v", r, last, err)
		}
		last = r
		for at := r.From; at < r.To; at++ {
			if i == len(entries) || entries[i].row.Line != r.Line || entries[i].row.Position != at {
				t.Fatalf("run %+v: position %d is not there", r, at)
			}
			i++
		}
	}
	if i != len(entries) {
		t.Fatalf("runs have %d of %d messages", i, len(entries))
	}
}

func checkScan(t tb, fsys vfs.FS, name string, entries []entry, payloads [][]byte) {
	t.Helper()
	i, sums := 0, map[Sum]bool{}
	for f, err := range Scan(fsys, name) {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Name != nil:
			if f.Err != nil || SumOf(f.Payload) != *f.Name {
				t.Fatalf("%+v", f)
			}
			sums[*f.Name] = true
		default:
			if i == len(entries) || bare(f.Row) != bare(entries[i].row) {
				t.Fatalf("%d: %+v", i, f)
			}
			checkMessage(t, &entries[i], f.Envelope, f.Err)
			i++
		}
	}
	if i != len(entries) {
		t.Fatalf("%d of %d messages", i, len(entries))
	}
	for _, b := range payloads {
		if !sums[SumOf(b)] {
			t.Fatal("a payload is missing")
		}
	}
}

// TestRefused adds what a pack does not take. The pack goes on without it.
func TestRefused(t *testing.T) {
	disk := crashfs.New()
	w, err := Create(disk)
	if err != nil {
		t.Fatal(err)
	}
	first, second := makeEnvelope(1, 5, "first"), makeEnvelope(1, 6, "second")
	if err := w.Add(first); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		add  func() error
		want error
	}{
		"same place":      {func() error { return w.Add(first) }, ErrOrder},
		"earlier":         {func() error { return w.Add(makeEnvelope(1, 4, "")) }, ErrOrder},
		"earlier line":    {func() error { return w.Add(makeEnvelope(0, 9, "")) }, ErrOrder},
		"newline":         {func() error { return w.Add(append(bytes.Clone(second), '\n')) }, message.ErrMalformed},
		"no envelope":     {func() error { return w.Add([]byte(`{}`)) }, message.ErrMalformed},
		"half":            {func() error { return w.Add(second[:len(second)-1]) }, message.ErrMalformed},
		"too large":       {func() error { return w.Add(make([]byte, MaxMessage+1)) }, vfs.ErrTooLarge},
		"large payload":   {func() error { _, err := w.AddPayload(make([]byte, MaxPayload+1)); return err }, vfs.ErrTooLarge},
		"several in line": {func() error { return w.Add(bytes.Replace(second, []byte(`,"id"`), []byte("\n,\"id\""), 1)) }, message.ErrMalformed},
	} {
		if err := c.add(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.Add(second); err != nil {
		t.Fatal(err)
	}
	// The largest payload there can be, and one that is there already.
	large := []byte(noise(MaxPayload, 7))
	for range 2 {
		if _, err := w.AddPayload(large); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(makeEnvelope(1, 7, "")); err == nil {
		t.Error("added behind the end")
	}
	if _, err := w.Commit(); err == nil {
		t.Error("committed twice")
	}
	w.Abort()
	p := open(t, disk, FileName(w.ID()))
	checkPack(t, p, []entry{entryOf(t, first), entryOf(t, second)}, [][]byte{large})
	if p.PayloadCount() != 1 {
		t.Error(p.PayloadCount())
	}
}

// TestSizes packs messages around the sizes at which frames and their headers change.
func TestSizes(t *testing.T) {
	disk := crashfs.New()
	least := len(makeEnvelope(1, 1, ""))
	var entries []entry
	for i, n := range []int{0, 255 - least, 256 - least, 1023 - least, 1024 - least, 128 << 10, FrameSize - least - 10,
		FrameSize - least - 1, FrameSize - least, FrameSize, unzstd.MaxWindow + 1, 1} {
		entries = append(entries, entryOf(t, makeEnvelope(1, i, strings.Repeat("a", max(n, 0)))))
	}
	for _, most := range []int{1, FrameSize} {
		p := open(t, disk, buildFrames(t, disk, most, entries))
		checkPack(t, p, entries, nil)
		for d := range p.Verify() {
			t.Errorf("%v", d.Err)
		}
	}
	// No message, no payload.
	p := open(t, disk, build(t, disk, nil))
	checkPack(t, p, nil, nil)
	checkMissing(t, p, nil, lineID(1), 0)
	// So many short ones that rows end a segment: each on a line of its own.
	var many []entry
	size := 0
	for n := range 4350 {
		e := message.Envelope{ID: messageID(n, 0), Line: lineID(n), StoredAt: epoch, File: messageID(n, 1), Body: []byte(`{}`)}
		many = append(many, entryOf(t, e.AppendTo(nil)))
		size += len(many[n].envelope) + 1
	}
	p = open(t, disk, build(t, disk, many))
	if p.foot.segments != 2 || size > FrameSize {
		t.Errorf("%d segments of %d bytes", p.foot.segments, size)
	}
	for i := range many {
		checkRange(t, p, many[i:i+1], lineID(i), 0, 1)
	}
}

// TestConcurrent reads a pack from several goroutines.
func TestConcurrent(t *testing.T) {
	entries, payloads := sample(t)
	disk := crashfs.New()
	p := open(t, disk, buildFrames(t, disk, 700, entries, payloads...))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			checkPack(t, p, entries, payloads)
			for range eachMessage(p, lineID(1), 0, 100) {
				break // frames are still being decoded
			}
		})
	}
	wg.Wait()
}

// TestZstdcat: the command prints exactly the messages, and tests the stream.
func TestZstdcat(t *testing.T) {
	cat, err := exec.LookPath("zstdcat")
	if err != nil {
		t.Skip("no zstdcat here")
	}
	dir := t.TempDir()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	entries, payloads := sample(t)
	entries = append(entries, entryOf(t, makeEnvelope(2, 500, strings.Repeat("long ", 400<<10))))
	name := build(t, fsys, entries, payloads...)
	var want bytes.Buffer
	for i := range entries {
		fmt.Fprintf(&want, "%s\n", entries[i].envelope)
	}
	got, err := exec.Command(cat, dir+"/"+name).Output()
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes, wanted %d: %v", len(got), want.Len(), err)
	}
	checkPack(t, open(t, fsys, name), entries, payloads)
}

// TestManyPages has tables of several pages, and an id that more lines have than a page has entries.
func TestManyPages(t *testing.T) {
	var entries []entry
	for line := range 700 {
		for n := range 2 {
			e := message.Envelope{ID: messageID(0, 0), Line: lineID(line), Position: int64(n), StoredAt: epoch, Body: []byte(`{}`)}
			if n == 1 {
				e.ID = messageID(line, 1)
			}
			entries = append(entries, entryOf(t, e.AppendTo(nil)))
		}
	}
	var payloads [][]byte
	for i := range 150 {
		payloads = append(payloads, fmt.Appendf(nil, "payload %d", i))
	}
	disk := crashfs.New()
	p := open(t, disk, buildFrames(t, disk, 1, entries, payloads...))
	if p.directory.pages() < 20 || p.ids.pages() < 3 || p.payloads.pages() < 3 {
		t.Fatal(p.directory.pages(), p.ids.pages(), p.payloads.pages())
	}
	n := 0
	for r, err := range p.LookupID(messageID(0, 0)) {
		if err != nil || r.Line != lineID(n) {
			t.Fatalf("%d: %+v, %v", n, r, err)
		}
		n++
	}
	if n != 700 {
		t.Errorf("%d rows of one id", n)
	}
	checkRuns(t, p, entries)
	for i := range entries {
		if i%2 == 1 || i < 20 {
			r, err := p.Lookup(entries[i].row.Line, entries[i].row.Position)
			if err != nil || bare(r) != bare(entries[i].row) {
				t.Fatal(r, err)
			}
		}
		if i%2 == 1 {
			for r, err := range p.LookupID(entries[i].row.ID) {
				if err != nil || bare(r) != bare(entries[i].row) {
					t.Fatal(r, err)
				}
			}
		}
	}
	for _, b := range payloads {
		if got, err := p.Payload(SumOf(b)); err != nil || !bytes.Equal(got, b) {
			t.Fatal(err)
		}
	}
	for d := range p.Verify() {
		t.Errorf("%+v", d)
	}
}

// TestSimilarIDs looks up ids that the table cannot tell apart: only rows can.
func TestSimilarIDs(t *testing.T) {
	var entries []entry
	for n := range 50 {
		e := message.Envelope{ID: messageID(1, n), Line: lineID(1), Position: int64(n), StoredAt: epoch, Body: []byte(`{}`)}
		e.ID[14], e.ID[15] = 7, 7
		entries = append(entries, entryOf(t, e.AppendTo(nil)))
	}
	disk := crashfs.New()
	p := open(t, disk, buildFrames(t, disk, 1000, entries))
	checkPack(t, p, entries, nil)
	other := messageID(2, 2)
	other[14], other[15] = 7, 7
	for r, err := range p.LookupID(other) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOpenReadsTheFooter: what opening and looking up reads does not grow with the pack.
func TestOpenReadsTheFooter(t *testing.T) {
	var entries []entry
	for n := range 3000 {
		entries = append(entries, entryOf(t, makeEnvelope(1, n, "")))
	}
	disk := crashfs.New()
	name := buildFrames(t, disk, 4000, entries)
	counted := &countingFS{FS: disk}
	p, err := Open(counted, name)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if counted.bytes != footerSize {
		t.Errorf("opening reads %d bytes", counted.bytes)
	}
	for _, at := range []int64{0, 1234, 2999} {
		counted.bytes = 0
		if _, err := p.Lookup(lineID(1), at); err != nil {
			t.Fatal(err)
		}
		if size, _ := disk.Lstat(name); counted.bytes > 32<<10 || size.Size() < 4*(32<<10) {
			t.Errorf("looking up position %d reads %d of %d bytes", at, counted.bytes, size.Size())
		}
	}
}

type countingFS struct {
	vfs.FS
	bytes int
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag)
	return &countingFile{f, c}, err
}

func (c *countingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.File.ReadAt(b, off)
	c.fs.bytes += n
	return n, err
}
