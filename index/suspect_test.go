package index

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// A write makes the log longer; before its sync, the next write fails. The suspect mark of the first one goes.
func TestDoubtOfEarlierWrite(t *testing.T) {
	b := newBench(t, 9)
	b.ix.opts.Full = 1 << 30
	must(t, b.commit())
	suspects := func() (n int) {
		for e, err := range b.disk.ReadDir(".") {
			must(t, err)
			if strings.HasSuffix(e.Name(), ".suspect") {
				n++
			}
		}
		return n
	}
	note := func(size int) journal.Item {
		return journal.Item{Kind: "note", Body: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size))}
	}
	must(t, b.ix.Prepare())
	first := b.ix.Append([]journal.Item{note(100 << 10)}, true)
	must(t, first.Err)
	if suspects() != 1 {
		t.Fatal("no suspect mark")
	}
	b.disk.Fail(func(op crashfs.Op) error {
		if op.Kind == crashfs.KindWrite && op.Size > 1000 {
			return syscall.ENOSPC
		}
		return nil
	})
	must(t, b.ix.Prepare())
	if c := b.ix.Append([]journal.Item{note(900 << 10)}, true); c.Err == nil {
		t.Fatal("it was written")
	}
	b.disk.Fail(nil)
	if suspects() != 1 {
		t.Error("the log is longer than what a sync proved, and nothing says so")
	}
	must(t, first.Wait())
}
