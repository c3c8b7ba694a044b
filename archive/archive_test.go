package archive

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// tb is what a testing.TB and a rapid.T have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 890000, time.UTC)

// lineID is the n-th line in the order of packs.
func lineID(n int) uuid.UUID { return uuid.UUID{0: byte(n >> 8), 1: byte(n), 6: 0x70, 8: 0x80, 15: 1} }

func messageID(line, n int) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%d/%d", line, n))
}

// makeEnvelope makes the n-th message of a line, with text as its content.
func makeEnvelope(line, n int, text string) []byte {
	e := message.Envelope{
		ID: messageID(line, n), Line: lineID(line), Position: int64(n), StoredAt: epoch.Add(time.Duration(n) * 1234567 * time.Microsecond),
		Branch: "main", Role: "user", Payloads: n % 3, Body: fmt.Appendf(nil, `{"role":"user","content":%q}`, text),
	}
	if n%7 == 3 {
		e.File = message.DerivedID(e.Line, e.ID.String())
	}
	return e.AppendTo(nil)
}

// noise is text that hardly shrinks.
func noise(n int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		b.WriteByte(byte('0' + r.IntN(64)))
	}
	return strings.ReplaceAll(b.String(), "\\", "/")
}

// entry is what a model of a pack has of a message.
type entry struct {
	row      Row
	envelope []byte
}

func entryOf(t tb, b []byte) entry {
	t.Helper()
	r, err := rowOf(b)
	if err != nil {
		t.Fatal(err)
	}
	return entry{r, b}
}

// build makes a pack and returns its name.
func build(t tb, fsys vfs.FS, entries []entry, payloads ...[]byte) string {
	t.Helper()
	return buildFrames(t, fsys, FrameSize, entries, payloads...)
}

// buildFrames makes a pack with frames of most bytes.
func buildFrames(t tb, fsys vfs.FS, most int, entries []entry, payloads ...[]byte) string {
	t.Helper()
	w, err := Create(fsys)
	if err != nil {
		t.Fatal(err)
	}
	w.limit = most
	name := FileName(w.ID())
	if err := fill(w, entries, payloads); err != nil {
		t.Fatal(err)
	}
	size, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := fsys.Lstat(name); err != nil || info.Size() != size {
		t.Fatalf("%v, %v, told %d bytes", info, err, size)
	}
	return name
}

func fill(w *Writer, entries []entry, payloads [][]byte) error {
	for i := range entries {
		if err := w.Add(entries[i].envelope); err != nil {
			return err
		}
	}
	for _, b := range payloads {
		if _, err := w.AddPayload(b); err != nil {
			return err
		}
	}
	return nil
}

func open(t tb, fsys vfs.FS, name string) *Pack {
	t.Helper()
	p, err := Open(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// bare is a row without its place in a pack.
func bare(r Row) Row {
	r.Place = Place{}
	return r
}

// sample has all kinds of rows: two lines, a hole, several segments.
func sample(t tb) (entries []entry, payloads [][]byte) {
	for n := range 20 {
		switch n {
		case 9: // a hole
		case 12:
			entries = append(entries, entryOf(t, makeEnvelope(1, n, noise(FrameSize+100, 12))))
		default:
			entries = append(entries, entryOf(t, makeEnvelope(1, n, strings.Repeat("what is said again ", n))))
		}
	}
	for n := range 4 {
		entries = append(entries, entryOf(t, makeEnvelope(2, 100+n, "other line")))
	}
	return entries, [][]byte{
		[]byte("a payload"), {}, bytes.Repeat([]byte("long "), 9999), []byte(noise(700<<10, 1)), []byte(noise(700<<10, 2)),
	}
}

func TestRoundTrip(t *testing.T) {
	disk := crashfs.New()
	entries, payloads := sample(t)
	p := open(t, disk, build(t, disk, entries, payloads...))
	checkPack(t, p, entries, payloads)
	if p.foot.segments < 3 {
		t.Errorf("%d segments", p.foot.segments)
	}
	for d := range p.Verify() {
		t.Errorf("%+v", d)
	}
	var runs []string
	for r, err := range p.Runs() {
		runs = append(runs, fmt.Sprint(r.Line == lineID(1), r.From, r.To, err))
	}
	if got := strings.Join(runs, "; "); got != "true 0 9 <nil>; true 10 20 <nil>; false 100 104 <nil>" {
		t.Error(got)
	}
}

// checkPack compares all that a pack gives with what went in.
func checkPack(t tb, p *Pack, entries []entry, payloads [][]byte) {
	t.Helper()
	if p.Len() != int64(len(entries)) {
		t.Fatalf("%d rows, wanted %d", p.Len(), len(entries))
	}
	var bytesWanted int64
	for i := range entries {
		e := &entries[i]
		bytesWanted += e.row.Size
		r, err := p.Lookup(e.row.Line, e.row.Position)
		if err != nil || bare(r) != bare(e.row) {
			t.Fatalf("row %d: %+v, %v\nwanted %+v", i, r, err, e.row)
		}
		b, err := p.ReadMessage(r)
		checkMessage(t, e, b, err)
		found := 0
		for r, err := range p.LookupID(e.row.ID) {
			if err != nil || r.ID != e.row.ID {
				t.Fatalf("by id: %+v, %v", r, err)
			}
			if bare(r) == bare(e.row) {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("row %d: %d times by id", i, found)
		}
	}
	if p.Bytes() != bytesWanted {
		t.Fatalf("%d bytes, wanted %d", p.Bytes(), bytesWanted)
	}
	for line := range slices.Values(linesIn(entries)) {
		checkRange(t, p, entries, line, 0, 1<<62)
	}
	for _, b := range payloads {
		got, err := p.Payload(SumOf(b))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("payload of %d bytes: %d bytes, %v", len(b), len(got), err)
		}
	}
	names := 0
	for sum, err := range p.Payloads() {
		names++
		if ok, herr := p.HasPayload(sum); !ok || err != nil || herr != nil {
			t.Fatal(sum, ok, err, herr)
		}
	}
	if int64(names) != p.PayloadCount() {
		t.Fatalf("%d payloads, %d names", p.PayloadCount(), names)
	}
}

func linesIn(entries []entry) (lines []uuid.UUID) {
	for i := range entries {
		lines = append(lines, entries[i].row.Line)
	}
	return slices.Compact(lines)
}

func checkMessage(t tb, e *entry, b []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(b, e.envelope) {
		t.Fatalf("position %d: %d bytes, %v", e.row.Position, len(b), err)
	}
}

// checkRange compares the rows and messages of a range with the model.
func checkRange(t tb, p *Pack, entries []entry, line uuid.UUID, from, to int64) {
	t.Helper()
	var want []*entry
	for i := range entries {
		if r := &entries[i].row; r.Line == line && r.Position >= from && r.Position < to {
			want = append(want, &entries[i])
		}
	}
	i := 0
	for r, err := range p.Rows(line, from, to) {
		if i == len(want) || err != nil || bare(r) != bare(want[i].row) {
			t.Fatalf("row %d of [%d, %d): %+v, %v", i, from, to, r, err)
		}
		i++
	}
	j := 0
	for m, err := range eachMessage(p, line, from, to) {
		if j == len(want) || bare(m.Row) != bare(want[j].row) {
			t.Fatalf("message %d of [%d, %d): %+v, %v", j, from, to, m.Row, err)
		}
		checkMessage(t, want[j], m.Envelope, err)
		j++
	}
	if i != len(want) || j != len(want) {
		t.Fatalf("[%d, %d): %d rows, %d messages, wanted %d", from, to, i, j, len(want))
	}
}

// eachMessage yields what Rows does, each with its envelope.
func eachMessage(p *Pack, line uuid.UUID, from, to int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for r, err := range p.Rows(line, from, to) {
			m := Message{Row: r}
			if err == nil {
				m.Envelope, err = p.ReadMessage(r)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// stride is the step of an exhaustive loop: 1, or n under -short.
func stride(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}
