package index

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// segmentNames returns the names of the segments, in order.
func (b *bench) segmentNames() (names []archive.Name) {
	b.t.Helper()
	for e, err := range b.disk.ReadDir("segments") {
		must(b.t, err)
		if n, ok := archive.ParseName(e.Name()); ok {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(x, y archive.Name) int { return int(x.From) - int(y.From) })
	return names
}

// TestNoMergeAcrossGap removes a segment: as long as nobody repairs the history, it stays visible that records are missing.
func TestNoMergeAcrossGap(t *testing.T) {
	for _, merge := range []func(ix *Index) error{
		func(ix *Index) error { return ix.Merge(archive.Options{}) },
		func(ix *Index) error { return ix.Compress(archive.Options{}) },
	} {
		b := newBench(t, 11)
		b.ix.opts.Full = 1 << 20
		for range 7 {
			must(t, b.commit())
			must(t, sealAll(b.ix))
		}
		b.ix.Close()
		names := b.segmentNames()
		lost := names[len(names)/2]
		must(t, b.disk.Remove("segments/"+lost.File()))
		b.ix = b.again(b.disk)
		if err := merge(b.ix); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		for _, n := range b.segmentNames() {
			if n.From <= lost.From && lost.To <= n.To {
				t.Errorf("%s hides that records %d to %d are missing", n.File(), lost.From, lost.To)
			}
		}
		found, _, err := b.ix.Examine(context.Background(), false)
		must(t, err)
		if len(found) == 0 {
			t.Error("nothing tells that records are missing")
		}
	}
}

// TestRescueKeepsHidden puts segments of one copy before those of another one that went on in another way: a rescue keeps what
// the history then does not show.
func TestRescueKeepsHidden(t *testing.T) {
	kept := 0
	for seed := range uint64(30) {
		b := newBench(t, seed)
		b.ix.opts.Full = 1 << 20
		must(t, b.commit())
		must(t, sealAll(b.ix))
		other := &bench{
			t: t, r: rand.New(rand.NewPCG(seed, 2)), disk: b.disk.Crash(crashfs.Keep), model: b.model.clone(), meta: b.meta.Clone(),
			made: b.made + 10_000, times: b.times,
		}
		other.ix = other.again(other.disk)
		other.ix.opts.Full = 1 << 20
		for range 3 {
			must(t, b.commit())
			must(t, sealAll(b.ix))
			must(t, other.commit())
			must(t, sealAll(other.ix))
		}
		b.ix.Close()
		other.ix.Close()
		mine, others := b.segmentNames(), other.segmentNames()
		if len(mine) < 3 || len(others) < 3 || mine[1].From != others[1].From || mine[1].To != others[1].To {
			b.ix = b.again(b.disk)
			continue
		}
		raw := files(t, other.disk)
		must(t, b.disk.Remove("segments/"+mine[1].File()))
		must(t, b.disk.Replace("segments/"+others[1].File(), raw["segments/"+others[1].File()]))
		intact := map[string]bool{}
		s, err := archive.Open(folderOf(t, b.disk).Segments, others[1].File())
		must(t, err)
		for e, err := range s.Envelopes() {
			must(t, err)
			intact[string(e)] = true
		}
		must(t, s.Close())
		b.ix = b.again(b.disk)
		found, parts, err := b.ix.Examine(context.Background(), true)
		must(t, err)
		hidden := map[string]bool{}
		must(t, b.ix.Rescue(append(found, parts...), Rescuer{
			Copy: func(*Entry) []byte { return nil }, Keep: func(string) error { return nil },
			Hidden: func(_ uuid.UUID, _ int64, raw []byte) error {
				hidden[string(raw)] = true
				return nil
			},
		}))
		must(t, b.ix.Merge(archive.Options{}))
		must(t, b.ix.Compress(archive.Options{}))
		shown := map[string]bool{}
		lines, _, err := b.ix.AllCounts()
		must(t, err)
		for line := range lines {
			for e, err := range b.ix.All(context.Background(), line, 0, 1<<40) {
				must(t, err)
				if raw, err := b.ix.ReadOne(e); err == nil {
					shown[string(raw)] = true
				}
			}
		}
		for e := range intact {
			if !shown[e] && !hidden[e] {
				t.Errorf("seed %d: %.80s is gone", seed, e)
			}
		}
		kept += len(hidden)
	}
	if kept == 0 {
		t.Error("nothing was hidden: the test shows nothing")
	}
}
