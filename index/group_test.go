package index

import (
	stdcontext "context"
	"os"
	"strings"
	"syscall"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// addGroup appends messages in one commit, without a sync.
func (b *bench) addGroup(n int, size int) *Commit {
	b.t.Helper()
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	defer func() { b.must(b.dir.Lock.Release()) }()
	b.must(b.log.Prepare())
	var items []Item
	for i := range n {
		item := b.next()
		item.Envelope.Position += int64(i)
		item.Envelope.Body = []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)
		if i > 0 {
			item.Envelope.Prev = b.ids[len(b.ids)-1]
		}
		item.Body = item.Envelope.AppendTo(nil)
		items = append(items, item)
		b.ids = append(b.ids, item.Envelope.ID)
	}
	c := b.log.AppendGroup(items)
	b.must(c.Err)
	return c
}

// TestTornGroup cuts the power after a commit of several records that nobody made durable. All of them are left, or
// none, for a reader, for a follower and after the next writer.
func TestTornGroup(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(2, true))
	b.addGroup(4, 700)
	seen := map[int]int{}
	for _, how := range choices(200) {
		left := *b
		left.fs = disk.Crash(how)
		left.open(b.dir.ID)
		counts, _, err := left.log.Counts(b.line)
		b.must(err)
		n := int(counts.Count)
		if seen[n]++; n != 2 && n != 6 {
			t.Fatalf("%s: %d messages", how, n)
		}
		followed := 0
		tail, err := FollowFrom(left.dir, 0)
		b.must(err)
		for _, ok, err := tail.Next(); ok; _, ok, err = tail.Next() {
			b.must(err)
			followed++
		}
		tail.Close()
		end, err := FollowEnd(left.dir)
		b.must(err)
		if followed != n || end.At() != tail.At() {
			t.Errorf("%s: %d messages, a follower sees %d, the end is %v, not %v", how, n, followed, end.At(), tail.At())
		}
		end.Close()
		if p, err := left.log.Problems(); err != nil || len(p) > 0 {
			t.Errorf("%s: %v, %v", how, p, err)
		}
		left.ids = append(left.ids[:0:0], b.ids[:n]...)
		b.must(left.add(1, true))
		left.shows(n + 1)
		left.close()
		left.open(b.dir.ID)
		left.shows(n + 1)
		left.close()
	}
	if seen[2] == 0 || seen[6] == 0 {
		t.Errorf("only one outcome was seen: %v", seen)
	}
}

// TestShortGroup: a group of which the disk takes only a part leaves nothing.
func TestShortGroup(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(2, true))
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	b.must(b.log.Prepare())
	first, second := b.next(), b.next()
	second.Envelope.Position++
	second.Body = second.Envelope.AppendTo(nil)
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindWrite && strings.Contains(o.Path, "/journal-") {
			return syscall.ENOSPC
		}
		return nil
	})
	if c := b.log.AppendGroup([]Item{first, second}); c.Err == nil || c.Written != 0 {
		t.Errorf("%d were written, %v", c.Written, c.Err)
	}
	disk.Fail(nil)
	b.must(b.dir.Lock.Release())
	b.shows(2)
	b.must(b.add(1, true))
	b.shows(3)
	b.survives(disk)
}

// TestGroupAfterAFailedSync: the new journal after a failed sync repeats whole commits, and no part of one.
func TestGroupAfterAFailedSync(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(2, true))
	c := b.addGroup(3, 300)
	stop := failing(disk, func(o crashfs.Op) bool { return o.Kind == crashfs.KindDatasync })
	if err := c.Sync(); err == nil {
		t.Fatal("the sync did not fail")
	}
	stop()
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	ok, err := b.log.Recommit(c)
	if err != nil || !ok {
		t.Fatalf("recommitted: %v, %v", ok, err)
	}
	b.must(b.dir.Lock.Release())
	b.shows(5)
	b.survives(disk)

	// A part of a group behind the last commit, as another writer that was stopped leaves it.
	item := b.next()
	f, err := b.dir.FS.OpenFile(ctxfolder.JournalFile(b.log.state.newest().gen), os.O_RDWR)
	b.must(err)
	s := b.log.state
	raw, _ := appendRecord(nil, head{
		seq: s.seq + 1, prev: s.chain, kind: KindAppend, len: int64(len(item.Body)), sum: bodySum(item.Body), more: true,
	}, item.Body)
	_, err = f.WriteAt(raw, s.newest().end)
	b.must(err)
	b.must(f.Close())
	b.must(b.log.Refresh())
	b.shows(5)
	b.must(b.add(1, true))
	b.shows(6)
	b.survives(disk)
}
