package index

import (
	stdcontext "context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// doubts returns the files in the context's folder that say that the blocks of a journal may hold nothing.
func (b *bench) doubts() (names []string) {
	b.t.Helper()
	for e, err := range b.dir.FS.ReadDir(".") {
		b.must(err)
		if strings.HasSuffix(e.Name(), ".doubt") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestStoppedAfterAFailedSync stops a process when the system told it of a failed sync, before its next call, and lets
// another process append. What that one acknowledges must survive a power cut, whether the first process is killed or
// goes on afterwards.
func TestStoppedAfterAFailedSync(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	for i := range 8 {
		folded, longer, killed := i&1 > 0, i&2 > 0, i&4 > 0
		t.Run(fmt.Sprintf("folded %t, longer %t, killed %t", folded, longer, killed), func(t *testing.T) {
			b, disk := newCrashBench(t)
			b.must(b.add(3, true))
			if folded {
				b.must(b.log.Fold(ctx, false))
			}
			if longer { // the refused record makes the journal longer
				b.fill()
			}
			b.must(b.dir.Lock.Acquire(ctx))
			b.must(b.log.Prepare())
			item := b.next()
			c := b.log.Append([]Item{item})
			b.must(c.Err)
			b.must(b.dir.Lock.Release())
			b.ids = append(b.ids, item.Envelope.ID)
			told := false
			stop := failing(disk, func(o crashfs.Op) bool {
				told = told || o.Kind == crashfs.KindDatasync && strings.Contains(o.Path, "/journal-")
				return told
			})
			if err := c.Wait(); err == nil {
				t.Fatal("the sync did not fail")
			}
			stop()
			other := b.process(disk)
			other.commit(false)
			other.survives(disk)
			if b.ids = other.ids; !killed {
				b.must(b.dir.Lock.Acquire(ctx))
				if ok, err := b.log.Recommit(c); !ok || err != nil {
					t.Errorf("the first process goes on: %t, %v", ok, err)
				}
				b.must(b.dir.Lock.Release())
				b.commit(false)
				other.ids = b.ids
				other.commit(false)
				other.survives(disk)
			}
		})
	}
}

// TestAppendBesideGrowth lets a process append while another one syncs the record that made the journal longer. Both
// records must survive, whether that sync fails or not.
func TestAppendBesideGrowth(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	for _, fails := range []bool{false, true} {
		b, disk := newCrashBench(t)
		b.must(b.add(3, true))
		b.fill()
		b.must(b.dir.Lock.Acquire(ctx))
		b.must(b.log.Prepare())
		item := b.next()
		c := b.log.Append([]Item{item})
		b.must(c.Err)
		b.must(b.dir.Lock.Release())
		if len(b.doubts()) != 1 {
			t.Errorf("before the sync there are %v", b.doubts())
		}
		b.ids = append(b.ids, item.Envelope.ID)
		var other *bench
		disk.Fail(func(o crashfs.Op) error {
			if o.Kind != crashfs.KindDatasync || other != nil {
				return nil
			}
			other = b.process(disk)
			other.commit(false)
			other.survives(disk)
			if fails {
				return syscall.EIO
			}
			return nil
		})
		err := c.Wait()
		disk.Fail(nil)
		if (err != nil) != fails {
			t.Fatalf("the sync fails %t: %v", fails, err)
		}
		if err != nil {
			b.must(b.dir.Lock.Acquire(ctx))
			ok, rerr := b.log.Recommit(c)
			if b.must(b.dir.Lock.Release()); !ok || rerr != nil {
				t.Errorf("after the failed sync: %t, %v", ok, rerr)
			}
		}
		b.ids = other.ids
		b.commit(false)
		b.survives(disk)
		if len(b.doubts()) > 0 {
			t.Errorf("at the end there are %v", b.doubts())
		}
	}
}

// TestNoDoubtRemains makes a journal longer several times. Each time the doubt is there before the write, and it is
// removed once the sync has succeeded, or if the disk has no room. Records in space that exists leave none.
func TestNoDoubtRemains(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.commit(false)
	grown := 0
	for range 150 {
		size, err := b.log.state.newest().size()
		b.must(err)
		before := len(disk.Ops())
		b.commit(false)
		ops := disk.Ops()[before:]
		now, err := b.log.state.newest().size()
		b.must(err)
		at := func(kind crashfs.Kind, ending string) int {
			return slices.IndexFunc(ops, func(o crashfs.Op) bool { return o.Kind == kind && strings.HasSuffix(o.Path, ending) })
		}
		made, wrote := at(crashfs.KindCreate, ".doubt"), at(crashfs.KindWrite, ".jsonl")
		synced, gone := at(crashfs.KindDatasync, ".jsonl"), at(crashfs.KindRemove, ".doubt")
		switch {
		case now == size && len(ops) != 2:
			t.Errorf("an append does %v", ops)
		case now > size:
			if grown++; made < 0 || wrote < made || synced < wrote || gone < synced || len(ops) != 4 {
				t.Errorf("an append that makes the journal longer does %v", ops)
			}
		}
	}
	if grown < 3 {
		t.Errorf("the journal became longer %d times", grown)
	}
	b.fill()
	stop := failing(disk, func(o crashfs.Op) bool { return o.Kind == crashfs.KindWrite && o.Size > 4<<10 })
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	if c := b.log.Append([]Item{b.next()}); c.Err == nil {
		t.Error("the disk has room")
	}
	b.must(b.dir.Lock.Release())
	if stop(); len(b.doubts()) > 0 {
		t.Errorf("after an append for which there was no room: %v", b.doubts())
	}
	b.commit(false)
	b.survives(disk)
}

// TestDoubtOfALaterGrowth makes the journal longer again while a sync runs. The doubt stays until a sync covers that too.
func TestDoubtOfALaterGrowth(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.commit(false)
	b.fill()
	write := func() *Commit {
		b.must(b.dir.Lock.Acquire(stdcontext.Background()))
		b.must(b.log.Prepare())
		c := b.log.Append([]Item{b.next()})
		b.must(c.Err)
		b.must(b.dir.Lock.Release())
		return c
	}
	size := func() int64 {
		n, err := b.log.state.newest().size()
		b.must(err)
		return n
	}
	first := write()
	var later *Commit
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindDatasync && later == nil {
			for before := size(); size() == before; {
				later = write()
			}
		}
		return nil
	})
	b.must(first.Wait())
	if disk.Fail(nil); len(b.doubts()) != 1 {
		t.Errorf("after a sync that does not cover the new blocks: %v", b.doubts())
	}
	b.must(later.Wait())
	if len(b.doubts()) > 0 {
		t.Errorf("after one that does: %v", b.doubts())
	}
}
