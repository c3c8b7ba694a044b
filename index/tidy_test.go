package index

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestTidy: what a crash leaves beside the segments that have its records goes, and a blank log. What another history has stays, and is
// named.
func TestTidy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		b := newBench(t, seed)
		for range 5 {
			must(t, b.commit())
		}
		c := &bench{
			t: t, r: rand.New(rand.NewPCG(seed, 2)), disk: b.disk.Crash(crashfs.Keep), model: b.model.clone(), meta: b.meta.Clone(),
			made: b.made + 10_000, times: b.times,
		}
		c.ix = c.again(c.disk)
		t.Cleanup(func() { c.ix.Close() })
		saved := map[string][]byte{}
		for range 20 {
			must(t, b.commit())
			must(t, b.ix.Rotate())
			maps.Copy(saved, files(t, b.disk))
			must(t, sealAll(b.ix))
			must(t, b.ix.Merge(archive.Options{}))
		}
		must(t, c.commit())
		must(t, c.ix.Rotate())
		must(t, c.commit())
		newest := "./" + c.ix.state.newest().Name()
		must(t, vfs.WriteNew(b.disk, newest, files(t, c.disk)[newest]))
		want := files(t, b.disk)
		for name, content := range saved {
			if _, there := want[name]; !there {
				must(t, vfs.WriteNew(b.disk, name, content))
			}
		}
		must(t, journal.Preallocate(b.disk, journal.NewName(7), 4096)) // an end that names it was never written
		b.ix.Close()
		b.ix = b.again(b.disk)
		must(t, b.ix.Prepare())
		strays, err := b.ix.Tidy()
		must(t, err)
		if !slices.Equal(strays, []string{path.Base(newest)}) {
			t.Errorf("seed %d: strays %v, wanted %s", seed, strays, newest)
		}
		left := files(t, b.disk)
		for name := range left {
			if _, there := want[name]; !there {
				t.Errorf("seed %d: %s is left", seed, name)
			}
		}
		for name := range want {
			if _, there := left[name]; !there {
				t.Errorf("seed %d: %s is gone", seed, name)
			}
		}
		b.compare(b.ix, "tidied")
	}
}
