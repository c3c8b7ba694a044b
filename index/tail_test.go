package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// drain returns what a tail has now.
func drain(t *testing.T, tail *Tail) (all []Tailed) {
	t.Helper()
	for {
		r, ok, err := tail.Next()
		must(t, err)
		if !ok {
			return all
		}
		all = append(all, r)
	}
}

// TestTail: a tail that follows sees each record once, as it was committed. One that begins later, at any record, sees
// the same ones, without what was replaced or erased meanwhile, and counts the same.
func TestTail(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, seed)
			follower := b.again(b.disk)
			defer follower.Close()
			tail, err := follower.Tail(0)
			must(t, err)
			defer func() { tail.Close() }()
			var seen []Tailed
			want := []journal.Item{{Kind: journal.Metadata}}
			for i := range 120 {
				before := b.model
				must(t, b.commit())
				if b.model != before {
					want = append(want, b.last...)
				}
				switch b.r.IntN(9) {
				case 0, 5:
					must(t, b.ix.Prepare())
					must(t, b.ix.Rotate())
				case 1:
					seen = append(seen, drain(t, tail)...) // before messages go that were cut off their lines
					must(t, sealAll(b.ix))
				case 2:
					must(t, b.ix.Merge(archive.Options{}))
				case 3:
					at := tail.At()
					tail.Close() // it rests
					next, err := follower.Resume(at)
					must(t, err)
					tail = next
				}
				if b.r.IntN(3) == 0 {
					seen = append(seen, drain(t, tail)...)
				}
				if i%10 == 9 {
					seen = append(seen, drain(t, tail)...)
					b.compareTails(seen, tail)
				}
			}
			if len(seen) != len(want) {
				t.Fatalf("%d records, wanted %d", len(seen), len(want))
			}
			for i := range want {
				if seen[i].Kind != want[i].Kind || i > 0 && len(seen[i].Body) > 0 && string(seen[i].Body) != string(want[i].Body) {
					t.Fatalf("record %d is a %s %q, wanted a %s %q", i, seen[i].Kind, seen[i].Body, want[i].Kind, want[i].Body)
				}
			}
		})
	}
}

// compareTails compares what tails see that begin anywhere with what one saw that followed.
func (b *bench) compareTails(seen []Tailed, follower *Tail) {
	b.t.Helper()
	ix := b.again(b.disk)
	defer ix.Close()
	end, err := ix.At()
	must(b.t, err)
	for range 4 {
		from := b.r.Uint64N(end.Seq + 1)
		tail, err := ix.Tail(from)
		must(b.t, err)
		got := drain(b.t, tail)
		rest := seen[slices.IndexFunc(append(slices.Clone(seen), Tailed{Seq: 1 << 60}), func(r Tailed) bool { return r.Seq > from }):]
		there := map[uint64]bool{}
		for i := range got {
			there[got[i].Seq] = true
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(r Tailed) bool {
			if there[r.Seq] || r.Entry == nil {
				return false
			}
			e, ok, err := ix.Entry(r.Entry.Line, r.Entry.Position) // it was cut off its line
			must(b.t, err)
			return !ok || e.Seq != r.Seq
		})
		if len(got) != len(rest) {
			b.t.Fatalf("from %d: %d records, wanted %d", from, len(got), len(rest))
		}
		for i := range got {
			g, w := &got[i], &rest[i]
			gone := g.Body == nil && g.Entry != nil
			if g.Kind == journal.Payload && len(g.Body) == 0 {
				g.Body = w.Body
			}
			if g.Seq != w.Seq || g.Kind != w.Kind || g.More != w.More || !gone && w.Body != nil && string(g.Body) != string(w.Body) {
				b.t.Fatalf("from %d: record %d, %s %q, wanted %d, %s %q", from, g.Seq, g.Kind, g.Body, w.Seq, w.Kind, w.Body)
			}
			if gone {
				e, ok, err := ix.Entry(g.Entry.Line, g.Entry.Position)
				must(b.t, err)
				if ok && e.Seq == g.Seq && e.Gone == archive.Here {
					b.t.Fatalf("from %d: record %d has no body", from, g.Seq)
				}
			}
		}
		counts, _, err := ix.AllCounts()
		must(b.t, err)
		for _, of := range []*Tail{tail, follower} {
			for id, c := range of.Counts() {
				if c.Count > 0 && (c.Count != counts[id].Count || c.Bytes != counts[id].Bytes || c.Last != counts[id].Last) {
					b.t.Fatalf("from %d: %+v, wanted %+v", from, c, counts[id])
				}
			}
		}
		if tail.m.Title != b.model.title {
			b.t.Fatalf("from %d: the title is %q, wanted %q", from, tail.m.Title, b.model.title)
		}
		tail.Close()
	}
	if _, err := ix.Tail(end.Seq + 1); err == nil {
		b.t.Fatal("a tail after a record that is not there")
	}
}
