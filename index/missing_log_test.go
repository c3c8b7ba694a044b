package index

import (
	"fmt"
	"runtime"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// A backup between the end of a log and the beginning of the next one.
func TestCopyBeforeBegin(t *testing.T) {
	b := newBench(t, 3)
	for range 10 {
		must(t, b.commit())
	}
	for range 100 { // until the log is full, and Prepare ends it
		must(t, b.ix.Prepare())
		if b.ix.state.newest().Next() != "" {
			break
		}
		must(t, b.commit())
	}
	if b.ix.state.newest().Next() == "" {
		t.Fatal("not rotated")
	}
	again := b.again(b.disk)
	must(t, again.Refresh())
	if p, _ := again.Problems(); len(p) > 0 {
		t.Fatalf("source: %v", p)
	}
	again.Close()
	_, to := b.copied(b.ix)
	ix := Open(to, b.options())
	defer ix.Close()
	must(t, ix.Refresh())
	if p, _ := ix.Problems(); len(p) > 0 {
		t.Errorf("the copy: %v", p)
	}
}

// The newest log, with acknowledged messages, is lost. After the next write nobody says so.
func TestMissingLogStaysMissing(t *testing.T) {
	b := newBench(t, 5)
	for range 5 {
		must(t, b.commit())
	}
	must(t, b.ix.Prepare())
	must(t, b.ix.Rotate())
	for range 3 {
		must(t, b.commit())
	}
	name := b.ix.state.newest().Name()
	b.ix.Close()
	must(t, b.disk.Remove(name))
	ix := b.again(b.disk)
	must(t, ix.Refresh())
	if p, _ := ix.Problems(); len(p) == 0 {
		t.Fatal("no problem before the write")
	}
	must(t, ix.Prepare())
	c := ix.Append([]journal.Item{{Kind: "x", Body: []byte("{}")}}, true)
	must(t, c.Err)
	must(t, c.Wait())
	ix.Close()
	ix = b.again(b.disk)
	defer ix.Close()
	must(t, ix.Refresh())
	if p, _ := ix.Problems(); len(p) == 0 {
		t.Error("the lost records are forgotten")
	}
	b.ix = ix
}

// 40 KB of metadata name lines that begin far behind the end of their parents. Nothing is damaged.
func TestLinesBehindTheirParents(t *testing.T) {
	b := newBench(t, 7)
	m := b.meta.Clone()
	parent := m.Lines[0].ID
	for i := range 4 {
		id := uuid.New()
		m.Lines = append(m.Lines, ctxfolder.Line{ID: id, Parent: parent, Base: int64(i+1) * (1<<20 - 1), Folder: fmt.Sprint("branch-", i)})
		parent = id
	}
	raw, err := ctxfolder.CommittableMetadata(m)
	must(t, err)
	must(t, b.ix.Prepare())
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	c := b.ix.Append([]journal.Item{{Kind: journal.Metadata, Body: raw}}, true)
	t.Log(c.Err)
	runtime.ReadMemStats(&is)
	if n := is.TotalAlloc - was.TotalAlloc; n > 100<<20 {
		t.Errorf("%d MiB for metadata of %d bytes", n>>20, len(raw))
	}
}
