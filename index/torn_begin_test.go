package index

import (
	"bytes"
	"testing"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// The first commit of a log is whole, and its begin record is not there, as a power cut may leave them. The log counts where it
// goes on from the one before, and the next writer makes it whole.
func TestTornBegin(t *testing.T) {
	for _, ended := range []bool{false, true} {
		b := newBench(t, 21)
		b.ix.opts.Full = 1 << 20
		for range 4 {
			must(t, b.commit())
		}
		must(t, b.ix.Rotate())
		b.ix.opts.Relaxed = ended // no mark says that the first commit was durable
		must(t, b.commit())
		if ended {
			must(t, b.ix.Prepare())
			b.ix.advance.Lock()
			must(t, b.ix.rotate())
			b.ix.advance.Unlock()
		}
		name := b.ix.state.newest().Name()
		first := b.ix.state.newest().From()
		b.ix.Close()
		raw, err := vfs.ReadFile(b.disk, name, 1<<20)
		must(t, err)
		at := bytes.IndexByte(raw, '\n')
		copy(raw, bytes.Repeat([]byte{'\n'}, at))
		must(t, b.disk.Replace(name, raw))

		clean := func(ix *Index, when string) {
			t.Helper()
			b.compare(ix, when)
			if p, err := ix.Problems(); err != nil || len(p) > 0 {
				t.Fatalf("ended %v, %s: %v, %v", ended, when, p, err)
			}
		}
		b.ix = b.again(b.disk)
		clean(b.ix, "torn")
		must(t, b.commit())
		clean(b.ix, "after a commit")
		l, err := journal.Open(b.disk, name)
		must(t, err)
		if l.IsTorn() || l.From() != first || l.State() == nil {
			t.Errorf("ended %v: it is torn %v, from %v", ended, l.IsTorn(), l.From())
		}
		must(t, l.Close())
		other := b.again(b.disk)
		clean(other, "of another process")
		other.Close()
		must(t, sealAll(b.ix))
		clean(b.ix, "sealed")
	}
}
