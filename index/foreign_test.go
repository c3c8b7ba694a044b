package index

import (
	"testing"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// The newest log of another, longer history was copied beside this one, which does not read it. Then an unrelated file with
// the name of a log is damaged: now the other history's log counts, and takes the next commits.
func TestForeignLog(t *testing.T) {
	b := newBench(t, 9)
	b.ix.opts.Full = 1 << 20
	for range 5 {
		must(t, b.commit())
	}
	must(t, sealAll(b.ix))
	must(t, b.commit())
	b.ix.Close()

	o := newBench(t, 10)
	o.ix.opts.Full = 1 << 20
	for range 40 {
		must(t, o.commit())
	}
	must(t, sealAll(o.ix))
	must(t, o.commit())
	foreign := o.ix.state.newest().Name()
	raw, err := vfs.ReadFile(o.disk, foreign, 1<<20)
	must(t, err)
	must(t, b.disk.Replace(foreign, raw))

	ix := b.again(b.disk)
	b.compare(ix, "beside another log")
	ix.Close()
	must(t, b.disk.Replace(journal.NewName(1), []byte("{\"garbage\": true}\n\n")))
	ix = b.again(b.disk)
	defer ix.Close()
	p, err := ix.Problems()
	must(t, err)
	t.Log(p)
	if newest, _ := ix.NewestLog(); newest == foreign {
		t.Errorf("the next commit goes to %s, of the other history", newest)
	}
	if err := difference(ix, b.model, b.r); err != nil {
		t.Errorf("beside another log and a damaged one: %v", err)
	}
	b.ix = b.again(b.disk)
}
