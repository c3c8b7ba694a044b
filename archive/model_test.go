package archive

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// tb is what a testing.TB and a rapid.T have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var (
	epoch     = time.Date(2026, 3, 4, 5, 6, 7, 890000, time.UTC)
	contextID = uuid.UUID{0: 7, 6: 0x70, 8: 0x80, 15: 9}
)

// lineID is the n-th line in the order of segments.
func lineID(n int) uuid.UUID { return uuid.UUID{0: byte(n >> 8), 1: byte(n), 6: 0x70, 8: 0x80, 15: 1} }

func messageID(line, n int) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%d/%d", line, n))
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

// spotAt is the place after a record of the history that all tests share.
func spotAt(seq uint64) journal.Position {
	return journal.Position{Seq: seq, Chain: message.Sum(fmt.Appendf(nil, "chain %d", seq))}
}

// entry is what a model has of a message.
type entry struct {
	row      Row
	envelope []byte
}

// makeEntry makes a version of the n-th message of a line, committed by record seq.
func makeEntry(line, n int, seq uint64, text string) entry {
	e := message.Envelope{
		ID: messageID(line, n), Line: lineID(line), Position: int64(n), StoredAt: epoch.Add(time.Duration(seq) * 1234567 * time.Microsecond),
		Branch: "main", Role: "user", Payloads: n % 3, Body: fmt.Appendf(nil, `{"role":"user","content":%q}`, text),
	}
	b := e.AppendTo(nil)
	return entry{Row{
		Line: e.Line, Position: e.Position, Seq: seq, ID: e.ID, At: e.StoredAt.UnixMicro(), Size: int64(len(b)), Sum: message.Sum(b),
		Payloads: e.Payloads, More: seq%5 == 2,
	}, b}
}

// history is a model of the records between two places: what a segment of them has.
type history struct {
	from, to uint64 // numbers of the first and the last record
	entries  []entry
	others   []Other
	joints   []uint64
	state    []byte
}

// sorted returns the entries in the order of a segment.
func sorted(all []entry) []entry {
	return slices.SortedFunc(slices.Values(all), func(a, b entry) int { return a.row.compare(b.row.Line, b.row.Position) })
}

// write writes the history as a segment, and returns its name.
func (h *history) write(t tb, fsys vfs.FS, o Options) string {
	t.Helper()
	w, err := Create(fsys, contextID, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range sorted(h.entries) {
		if err := w.Add(e.row, e.envelope); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range h.others {
		if err := w.AddOther(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range h.joints {
		w.AddJoint(spotAt(j))
	}
	return h.commit(t, fsys, w)
}

func (h *history) commit(t tb, fsys vfs.FS, w *Writer) string {
	t.Helper()
	name, size, err := w.Commit(spotAt(h.from-1), spotAt(h.to), h.state)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := fsys.Lstat(name); err != nil || info.Size() != size {
		t.Fatalf("%v, %v, told %d bytes", info, err, size)
	}
	if n, ok := ParseName(name); !ok || n != NameOf(spotAt(h.from-1), spotAt(h.to)) {
		t.Fatalf("%s is %+v, %v", name, n, ok)
	}
	return name
}

func open(t tb, fsys vfs.FS, name string) *Segment {
	t.Helper()
	s, err := Open(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// bare is a row without its place in a segment.
func bare(r Row) Row {
	r.Place = Place{}
	return r
}

// then returns the history of both, as a rewrite makes it.
func (h *history) then(next *history) *history {
	both := &history{from: h.from, to: next.to, state: next.state, joints: slices.Concat(h.joints, []uint64{h.to}, next.joints)}
	both.entries = slices.Clone(next.entries)
	both.others = slices.Concat(h.others, next.others)
	for _, e := range h.entries {
		if slices.ContainsFunc(next.entries, func(n entry) bool { return n.row.compare(e.row.Line, e.row.Position) == 0 }) {
			both.others = append(both.others, Superseded(&e.row))
		} else {
			both.entries = append(both.entries, e)
		}
	}
	slices.SortFunc(both.others, func(a, b Other) int { return cmp.Compare(a.Seq, b.Seq) })
	return both
}

// check compares a segment with the history that it has to have.
func (h *history) check(t tb, s *Segment) {
	t.Helper()
	if s.Context() != contextID || s.From() != spotAt(h.from-1) || s.To() != spotAt(h.to) || s.Len() != int64(len(h.entries)) {
		t.Fatalf("%s: context %s, from %v to %v, %d messages", s.name, s.Context(), s.From(), s.To(), s.Len())
	}
	entries := sorted(h.entries)
	spans, err := s.Spans()
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for _, span := range spans {
		for r, err := range s.Rows(span.Line, span.From, span.To) {
			if err != nil || i == len(entries) || bare(r) != entries[i].row {
				t.Fatalf("row %d: %+v, %v", i, r, err)
			}
			if bytes.Compare(r.ID[:], span.Least[:]) < 0 || bytes.Compare(r.ID[:], span.Greatest[:]) > 0 {
				t.Fatalf("the id of row %d is outside its span", i)
			}
			h.checkMessage(t, s, r, &entries[i])
			i++
		}
	}
	if i != len(entries) {
		t.Fatalf("spans have %d of %d messages", i, len(entries))
	}
	i = 0
	for o, err := range s.Others(0) {
		if err != nil || i == len(h.others) || !equalOther(&o, &h.others[i]) {
			t.Fatalf("record %d: %+v, %v", i, o, err)
		}
		i++
	}
	if i != len(h.others) {
		t.Fatalf("%d of %d other records", i, len(h.others))
	}
	joints, err := s.Joints()
	if err != nil || len(joints) != len(h.joints) {
		t.Fatalf("%d joints, %v", len(joints), err)
	}
	for i, j := range joints {
		if j != spotAt(h.joints[i]) {
			t.Fatalf("joint %d is %v", i, j)
		}
	}
	if state, err := s.State(); err != nil || !bytes.Equal(state, h.state) {
		t.Fatalf("state %q, %v", state, err)
	}
	for d := range s.Verify() {
		t.Fatalf("%+v", d)
	}
}

func equalOther(a, b *Other) bool {
	return a.Seq == b.Seq && a.Kind == b.Kind && a.More == b.More && bytes.Equal(a.Body, b.Body)
}

// checkMessage asks for a message in each way.
func (h *history) checkMessage(t tb, s *Segment, r Row, want *entry) {
	t.Helper()
	if found, err := s.Lookup(r.Line, r.Position); err != nil || found != r {
		t.Fatalf("looked up %+v, %v", found, err)
	}
	n := 0
	for found, err := range s.LookupID(r.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if found == r {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("the id %s has the row %d times", r.ID, n)
	}
	b, err := s.ReadMessage(r)
	if r.Gone != Here {
		if err == nil {
			t.Fatalf("a message that is gone: %q", b)
		}
		return
	}
	if err != nil || !bytes.Equal(b, want.envelope) {
		t.Fatalf("message %q, %v", b, err)
	}
	if all := s.ReadMessages([]Row{r, r}); !bytes.Equal(all[0], b) || !bytes.Equal(all[1], b) {
		t.Fatalf("messages %q", all)
	}
}
