package index

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
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
		unlinked, err := b.ix.Tidy()
		must(t, err)
		if !slices.Equal(unlinked, []string{path.Base(newest)}) {
			t.Errorf("seed %d: unlinked %v, wanted %s", seed, unlinked, newest)
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

// TestTidyBesideDamage: a log that a crash left beside its segment stays while that is damaged, and is of no other history. A
// rescue takes from it what the segment lost.
func TestTidyBesideDamage(t *testing.T) {
	t.Parallel()
	for part, at := range map[string]func(b []byte) int{
		"a message": func([]byte) int { return 64 }, // of the first frame
		"footer":    func(b []byte) int { return len(b) - 20 },
	} {
		for seed := range uint64(10) {
			b := newBench(t, seed)
			for range 20 {
				must(t, b.commit())
			}
			must(t, b.ix.Prepare())
			must(t, b.ix.Rotate())
			logs := files(t, b.disk)
			must(t, sealAll(b.ix))
			var problems []Problem
			for name := range files(t, b.disk) {
				if delete(logs, name); strings.HasSuffix(name, ".zst") {
					problems = append(problems, Problem{File: path.Base(name)})
					change(t, b.disk, name, func(b []byte) []byte { b[at(b)]++; return b })
				}
			}
			for name, content := range logs {
				must(t, vfs.WriteNew(b.disk, name, content))
			}
			left := func() (n int) {
				for name := range files(t, b.disk) {
					if _, is := logs[name]; is {
						n++
					}
				}
				return n
			}
			b.ix.Close()
			b.ix = b.again(b.disk)
			must(t, b.ix.Prepare())
			if _, err := b.ix.Tidy(); !errors.Is(err, ErrDamaged) {
				t.Fatalf("seed %d, %s: %v", seed, part, err)
			}
			_ = b.ix.Merge(archive.Options{}) // likewise
			unlinked, err := b.ix.Unlinked()
			must(t, err)
			if n := left(); n == 0 || n != len(logs) || len(unlinked) > 0 {
				t.Fatalf("seed %d, %s: %d of %d logs are left, unlinked: %v", seed, part, n, len(logs), unlinked)
			}
			none := func(*Entry) []byte { return nil }
			must(t, b.ix.Rescue(problems, Rescuer{Copy: none, Keep: keep(b.disk)}))
			b.compare(b.ix, "rescued")
			must(t, b.ix.Prepare())
			unlinked, err = b.ix.Tidy()
			must(t, err)
			if n := left(); n != len(unlinked) { // one whose place is lost counts as another history's
				t.Fatalf("seed %d, %s: %d logs are left, unlinked: %v", seed, part, n, unlinked)
			}
			b.compare(b.ix, "tidied")
		}
	}
}
