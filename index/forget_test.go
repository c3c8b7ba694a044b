package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
)

// TestForget: no file has an earlier version of a message, or earlier metadata, after these were forgotten. The history
// shows what it did, and tails begin at any record.
func TestForget(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		b := newBench(t, seed)
		secrets := map[string]bool{}
		gone := func(envelope string) {
			if i := strings.Index(envelope, `"content":`); i >= 0 {
				secrets[envelope[i:min(i+40, len(envelope))]] = true
			}
		}
		for i := range 80 {
			before := b.model
			must(t, b.commit())
			if b.model.title != before.title {
				secrets[fmt.Sprintf(`"title":%q`, before.title)] = true
			}
			for line, was := range before.lines {
				for p, m := range was {
					if all := b.model.lines[line]; p >= len(all) || all[p].envelope != m.envelope {
						gone(m.envelope)
					}
				}
			}
			switch b.r.IntN(9) {
			case 0:
				must(t, b.ix.Prepare())
				must(t, b.ix.Rotate())
			case 1, 2:
				must(t, sealAll(b.ix))
			case 3:
				must(t, b.ix.Merge(archive.Options{}))
			case 4:
				_, err := b.ix.ForgetVersions(archive.Options{})
				must(t, err)
			case 5:
				must(t, b.ix.ForgetMetadata(archive.Options{}))
			}
			b.compare(b.ix, fmt.Sprintf("seed %d, step %d", seed, i))
		}
		must(t, b.ix.Prepare())
		must(t, b.ix.Rotate())
		must(t, sealAll(b.ix))
		_, err := b.ix.ForgetVersions(archive.Options{})
		must(t, err)
		must(t, b.ix.ForgetMetadata(archive.Options{}))
		all := contents(t, b.disk, ".")
		for secret := range secrets {
			if at := strings.Index(all, secret); at >= 0 {
				file := all[strings.LastIndex(all[:at], "== "):at]
				t.Fatalf("seed %d: %s has %s", seed, file[:strings.IndexByte(file, '\n')], secret)
			}
		}
		if len(secrets) == 0 {
			t.Fatal("nothing is to be forgotten")
		}
		must(t, b.commit())
		other := b.again(b.disk)
		b.compare(other, fmt.Sprintf("seed %d, anew", seed))
		b.tailsFrom(other)
		must(t, other.Merge(archive.Options{}))
		b.compare(other, fmt.Sprintf("seed %d, merged", seed))
		b.tailsFrom(other)
		other.Close()
	}
}

// tailsFrom lets tails begin at some records, and compares with the model what they count at the end.
func (b *bench) tailsFrom(ix *Index) {
	b.t.Helper()
	end, err := ix.At()
	must(b.t, err)
	counts, _, err := ix.AllCounts()
	must(b.t, err)
	for from := uint64(0); from <= end.Seq; from += 1 + b.r.Uint64N(end.Seq/4+1) {
		tail, err := ix.Tail(from)
		must(b.t, err)
		last := from
		for _, r := range drain(b.t, tail) {
			if r.Seq <= last {
				b.t.Fatalf("from %d: record %d after %d", from, r.Seq, last)
			}
			last = r.Seq
		}
		if tail.m.Title != b.model.title {
			b.t.Fatalf("from %d: the title is %q, wanted %q", from, tail.m.Title, b.model.title)
		}
		for id, c := range tail.Counts() {
			if c.Count != counts[id].Count {
				b.t.Fatalf("from %d: line %s has %d messages, wanted %d", from, id, c.Count, counts[id].Count)
			}
		}
		tail.Close()
	}
}
