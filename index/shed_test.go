package index

import (
	stdcontext "context"
	"slices"
	"testing"
)

// journals returns the generations that are there, and those that index.json says are folded.
func (b *bench) journals() (there, folded []uint64) {
	there, err := generations(b.dir)
	b.must(err)
	x, err := readIndexFile(b.dir)
	b.must(err)
	return there, x.retained()
}

// TestShed checks that a journal goes if it is large beside the context and stays as a second copy if it is small.
// Older handles must continue.
func TestShed(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	other := *b
	other.open(b.dir.ID)
	defer other.close()
	b.must(b.add(300, true))
	b.must(other.log.Refresh())
	b.must(b.log.Shed(ctx))
	if there, folded := b.journals(); len(there) != 1 || len(folded) != 0 {
		t.Fatalf("journals %v, folded %v", there, folded)
	}
	b.cut(disk)
	other.ids = slices.Clone(b.ids)
	b.must(other.add(1, true))
	b.ids = other.ids
	b.must(b.log.Refresh())
	b.shows(301)
	b.must(b.log.Fold(ctx, true))
	if b.log.CanShed() {
		t.Error("a journal with the last of 301 messages is large")
	}
	b.must(b.log.Shed(ctx))
	if _, folded := b.journals(); len(folded) != 1 {
		t.Errorf("the second copy of the newest message: journals %v", folded)
	}
	b.shows(301)
	b.cut(disk)
}

// TestShedBeside appends while a shed runs: the append must not be lost with the newest journal.
func TestShedBeside(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	b.must(b.add(5, true))
	b.must(b.log.Fold(ctx, true))
	other := *b
	other.open(b.dir.ID)
	defer other.close()
	b.must(b.dir.FoldLock.Acquire(ctx))
	a := arrangement{log: b.log}
	b.must(a.begin())
	b.must(other.add(2, true))
	b.ids = other.ids
	b.must(b.dir.Lock.Acquire(ctx))
	b.log.advance.Lock()
	done, err := a.commitAlone()
	b.log.advance.Unlock()
	b.must(err)
	b.must(b.dir.Lock.Release())
	b.must(b.dir.FoldLock.Release())
	if done {
		t.Error("it went on beside an append")
	}
	b.cut(disk)
	b.must(b.log.Shed(ctx))
	b.shows(7)
	b.cut(disk)
}

// TestPowerCutAroundShed cuts the power at each operation of a shed.
func TestPowerCutAroundShed(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		b, disk := newCrashBench(t)
		b.must(b.add(3, true))
		b.must(b.log.Fold(stdcontext.Background(), true))
		b.must(b.add(2, true))
		disk.CutAt(len(disk.Ops()) + k)
		err := b.log.Shed(stdcontext.Background())
		if !disk.PowerCut() {
			b.must(err)
			return
		}
		for _, choice := range choices(10) {
			left := *b
			left.fs = disk.Crash(choice)
			left.open(b.dir.ID)
			left.shows(5)
			left.must(left.add(1, true))
			left.must(left.log.Shed(stdcontext.Background()))
			left.shows(6)
			left.close()
		}
	}
}
