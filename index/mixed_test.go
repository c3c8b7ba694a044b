package index

import (
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// files returns the content of all logs and segments.
func files(t *testing.T, disk *crashfs.FS) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, folder := range []string{".", "segments"} {
		for e, err := range disk.ReadDir(folder) {
			must(t, err)
			if e.IsDir() {
				continue
			}
			b, err := vfs.ReadFile(disk, folder+"/"+e.Name(), 1<<30)
			must(t, err)
			all[folder+"/"+e.Name()] = b
		}
	}
	return all
}

// beginOf returns the place from which a log goes on.
func beginOf(t *testing.T, name string, content []byte) journal.Position {
	t.Helper()
	disk := crashfs.New()
	must(t, vfs.WriteNew(disk, name, content))
	l, err := journal.Open(disk, name)
	if err != nil {
		return journal.Position{Seq: journal.MaxSeq} // it is blank
	}
	defer l.Close()
	return l.From()
}

// TestMixed: the files of two copies of a context, in which different things were committed since, come into one folder, as
// a program for synchronising folders does it. One of the two histories counts, whole. The files of the other one stay.
func TestMixed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		b := newBench(t, seed)
		steps := func(b *bench, n int) {
			for range n {
				if next, err := b.step(); err != nil || next != nil {
					t.Fatal(err)
				}
			}
		}
		steps(b, int(seed%20))
		c := &bench{
			t: t, r: rand.New(rand.NewPCG(seed, 2)), disk: b.disk.Crash(crashfs.Keep), model: b.model.clone(), meta: b.meta.Clone(),
			made: b.made + 10_000, times: b.times,
		}
		c.ix = c.again(c.disk)
		parted, err := b.ix.At()
		must(t, err)
		t.Cleanup(func() { c.ix.Close() })
		steps(b, 1+int(seed%13))
		steps(c, 1+int(seed%17))
		into, from := b, c
		if seed%2 == 1 {
			into, from = c, b
		}
		mine, others := files(t, into.disk), files(t, from.disk)
		if seed%3 == 0 { // of the other one, only segments come
			maps.DeleteFunc(others, func(name string, _ []byte) bool { return path.Dir(name) == "." })
		}
		for name, content := range others {
			if _, there := mine[name]; there && seed%4 < 2 {
				continue // a file that is there stays
			}
			f := into.disk
			_ = f.Remove(name)
			must(t, vfs.WriteNew(f, name, content))
		}
		ix := into.again(into.disk)
		must(t, ix.Refresh())
		counts := into
		if err := difference(ix, into.model, into.r); err != nil {
			counts = from
			if other := difference(ix, from.model, from.r); other != nil {
				t.Fatalf("seed %d: neither history: %v, %v", seed, err, other)
			}
		}
		must(t, ix.Prepare())
		must(t, ix.Rotate())
		must(t, sealAll(ix))
		must(t, ix.Merge(archive.Options{}))
		if err := difference(ix, counts.model, counts.r); err != nil {
			t.Errorf("seed %d: sealed: %v", seed, err)
		}
		left := files(t, into.disk)
		lost := mine
		if counts == into {
			lost = others
		}
		for name, content := range lost {
			_, both := mine[name]
			if _, b := others[name]; b && both {
				continue
			}
			if n, is := archive.ParseName(path.Base(name)); is && n.From <= parted.Seq {
				continue // both histories have what is in it, and the other one may have it merged
			}
			if _, is := journal.ParseName(path.Base(name)); is && beginOf(t, path.Base(name), content).Seq < parted.Seq {
				continue // likewise, and the other one may have sealed it
			}
			if !regexp.MustCompile(`"kind":"([^be]|erase)`).Match(content) {
				continue // a log without records
			}
			if _, there := left[name]; !there {
				t.Errorf("seed %d: %s of the other history is gone", seed, name)
			}
		}
		ix.Close()
	}
}
