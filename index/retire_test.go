package index

import (
	stdcontext "context"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/message"
)

// TestRetireReplaced replaces a message between the rotation and the end of a fold. The handle must still forget the
// later entries: they may be archived next, and then no journal has them.
func TestRetireReplaced(t *testing.T) {
	t.Parallel()
	for _, rotate := range []bool{false, true} {
		retireReplaced(t, rotate)
	}
}

func retireReplaced(t *testing.T, rotate bool) {
	b, _ := newCrashBench(t)
	b.must(b.add(4, true))
	other := *b
	other.open(b.dir.ID)
	defer other.close()
	b.must(other.log.Refresh())
	ctx := stdcontext.Background()
	work, err := b.log.collect(ctx, rotate)
	b.must(err)
	old, err := b.log.Entries(b.line, 1, 2)
	b.must(err)
	b.must(b.dir.Lock.Acquire(ctx))
	b.must(b.log.Prepare())
	env := &message.Envelope{
		ID:       b.ids[1],
		Line:     b.line,
		Position: 1,
		Prev:     b.ids[0],
		StoredAt: old[0].StoredAt().Add(time.Second),
		Branch:   "main",
		Body:     []byte(`{"n":"new"}`),
	}
	commit := b.log.Append([]Item{{Kind: KindReplace, Envelope: env, Body: env.AppendTo(nil), Was: old[0].Size}})
	b.must(b.dir.Lock.Release())
	b.must(commit.Err)
	b.must(commit.Wait())
	b.must(b.add(1, true))
	b.must(other.log.Refresh())
	b.must(b.log.writeRows(work))
	_, err = b.log.finishFold(work, work.journals)
	b.must(err)
	for name, log := range map[string]*Log{"who folded": b.log, "another one": other.log} {
		log.IndexChanged(log.IndexVersion())
		ln := log.state.lines[b.line]
		if ln.start != 4 || len(ln.recent) != 1 || len(ln.changed) != 1 || ln.changed[1] == nil {
			t.Errorf("%s: rows up to %d, %d behind them, %d changed", name, ln.start, len(ln.recent), len(ln.changed))
		}
		entries, err := log.Entries(b.line, 0, 5)
		b.must(err)
		for i, e := range entries {
			if raw, ok := log.ReadRecord(&e); !ok || e.ID != b.ids[i] || i == 1 && len(raw) != len(env.AppendTo(nil)) {
				t.Errorf("%s, position %d: %+v", name, i, e)
			}
		}
	}
}

// TestLayOutStale checks that a stale handle does not preallocate a journal.
func TestLayOutStale(t *testing.T) {
	t.Parallel()
	b, _ := newCrashBench(t)
	b.must(b.add(1, true))
	other := *b
	other.open(b.dir.ID)
	defer other.close()
	b.must(other.log.Refresh())
	ctx := stdcontext.Background()
	for range 4 {
		b.must(b.add(1, true))
		b.must(b.log.Fold(ctx, true))
	}
	b.must(other.log.Fold(ctx, true))
	x, err := readIndexFile(b.dir)
	b.must(err)
	gens, err := generations(b.dir)
	b.must(err)
	for _, gen := range gens {
		if gen < x.Live && !slices.Contains(x.Journals, gen) {
			t.Errorf("journal %d is there, and index.json names %v", gen, x.Journals)
		}
	}
}
