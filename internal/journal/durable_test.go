package journal

import (
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestCommitSurvives cuts the power at every operation of a few commits.
func TestCommitSurvives(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		b := newBench(t)
		b.commit(1)
		b.fill()
		b.disk.CutAt(len(b.disk.Ops()) + k)
		for range 3 {
			if err := b.write(`{"more":1}`, true); err != nil {
				break
			}
		}
		for _, how := range choices(10) {
			b.survivesCut(b.disk.Crash(how), how)
		}
		if !b.disk.PowerCut() {
			break
		}
	}
}

// TestFailedSync lets a process end after the system refused its record. A record that another process acknowledges
// must survive a power cut, with all records before it.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(b *bench){
		"append":        func(b *bench) { b.commit(1) },
		"read before":   func(b *bench) { b.must(b.read()); b.commit(1) },
		"refused again": func(b *bench) { b.refused(); b.commit(1) },
		"make durable": func(b *bench) {
			if b.l.MakeDurable() != nil {
				b.must(b.replace())
			}
			b.bodies = slices.Clone(b.shown)
		},
		"torn behind it": func(b *bench) {
			_, err := b.l.f.WriteAt([]byte(headChain), b.l.end)
			b.must(err)
			b.l.checked = false
			b.commit(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, longer := range []bool{false, true} {
				b := newBench(t)
				b.commit(3)
				if longer { // the refused record makes the log longer
					b.fill()
				}
				before := b.l.allocated
				b.refused()
				if now := b.l.allocated; longer != (now > before) {
					t.Errorf("longer %t, but it has %d bytes after %d", longer, now, before)
				}
				b.must(b.l.Close())
				other := b.process(b.disk)
				next(other)
				other.survives()
			}
		})
	}
}

// TestCutAroundReplacement cuts the power at each operation of a commit after a failed sync.
func TestCutAroundReplacement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(1)
	b.fill()
	b.refused()
	b.must(b.l.Close())
	for k, cut := 1, true; cut; k++ {
		now := b.disk.Clone()
		other := b.process(now)
		now.CutAt(len(now.Ops()) + k)
		err := other.write(`{"after":1}`, true)
		if cut = now.PowerCut(); !cut {
			b.must(err)
		}
		for _, how := range choices(10) {
			other.survivesCut(now.Crash(how), how)
		}
	}
}

// TestFailedSyncOfAnother gives a process the error of another process's write.
func TestFailedSyncOfAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(3)
	other := b.process(b.disk)
	other.commit(1)
	b.refused()
	other.commit(1)
	if !slices.Contains(other.shown, `{"refused":true}`) {
		t.Errorf("the record of the other process is gone: %q", other.shown)
	}
	other.survives()
	b.commit(1)
	b.survives()
}

// TestForgotten reads a record that the system could not write and drops before the next process writes. In one case
// another record has taken its place by then.
func TestForgotten(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		b := newBench(t)
		b.commit(3)
		b.refused()
		b.must(b.l.Close())
		other := b.process(b.disk)
		b.must(b.disk.Drop(testLog))
		if replaced {
			third := b.process(b.disk)
			third.commit(1)
			other.bodies = third.bodies
		}
		other.commit(1)
		other.survives()
	}
}

// TestOneSync opens a log with records that no mark proves durable. The process rewrites them once, and syncs once.
func TestOneSync(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(4)
	fourth := b.l.end // the fifth record says that the fourth is durable
	b.commit(1)
	other := b.process(b.disk)
	for i, from := range []int64{fourth, 0} {
		before, end := len(b.disk.Ops()), other.l.end
		other.commit(1)
		var writes, syncs []crashfs.Op
		for _, o := range b.disk.Ops()[before:] {
			switch o.Kind {
			case crashfs.KindWrite:
				writes = append(writes, o)
			case crashfs.KindSync, crashfs.KindDatasync, crashfs.KindSyncDir, crashfs.KindSyncAll:
				syncs = append(syncs, o)
			default:
			}
		}
		if len(syncs) != 1 {
			t.Errorf("commit %d: %v", i, syncs)
		}
		if i == 0 && (len(writes) != 2 || writes[0].Off != from || writes[1].Off != end) || i == 1 && (len(writes) != 1 || writes[0].Off != end) {
			t.Errorf("commit %d, behind %d: %v", i, end, writes)
		}
	}
}

// TestMarks checks that a record says up to where its writer knows all records to be durable, and no further. A writer
// that does not sync learns this from the marks of others.
func TestMarks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(2)
	relaxed := b.process(b.disk)
	for range 3 {
		b.must(relaxed.write(`{}`, false))
	}
	b.commit(2)
	again := b.process(b.disk)
	var marks []uint64
	again.must(again.open())
	l, err := Open(again.dir, testLog)
	b.must(err)
	_, err = l.Read(func(r Record) error { marks = append(marks, r.Mark); return nil }, nil)
	b.must(err)
	if want := []uint64{0, 1, 1, 1, 1, 2, 6}; !slices.Equal(marks, want) {
		t.Errorf("the marks are %d, wanted %d", marks, want)
	}
}

// TestRelaxedAndAFailedWriteback writes without a sync, and the system fails to write the record. The process that is
// told may be killed before it can say so. The record must be durable when a later one is acknowledged.
func TestRelaxedAndAFailedWriteback(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		b := newBench(t)
		b.commit(1)
		told := b.process(b.disk)
		told.commit(1)
		relaxed := told.process(b.disk)
		for range 3 {
			b.must(relaxed.write(`{}`, false))
		}
		b.must(b.disk.FailWriteback(testLog))
		sync := func() error { return told.l.SyncTo(0) }
		if killed {
			sync = told.l.f.Datasync
		}
		if sync() == nil {
			t.Fatal("the failed write was not reported")
		}
		other := relaxed.process(b.disk)
		other.commit(1)
		other.bodies = append(slices.Clone(relaxed.shown), other.bodies[len(other.bodies)-1])
		other.survives()
	}
}
