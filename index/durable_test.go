package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// process opens the context as another process does: with descriptors of its own.
func (b *bench) process(disk *crashfs.FS) *bench {
	b.t.Helper()
	fsys, err := disk.Sub(".")
	b.must(err)
	other := *b
	other.fs = fsys
	other.open(b.dir.ID)
	b.t.Cleanup(other.close)
	return &other
}

// failing lets operations fail that a function picks, until stop is called.
func failing(disk *crashfs.FS, pick func(crashfs.Op) bool) (stop func()) {
	disk.Fail(func(o crashfs.Op) error {
		if pick(o) {
			return syscall.EIO
		}
		return nil
	})
	return func() { disk.Fail(nil) }
}

// addFailing appends a message while the disk refuses its record, and the new journal for it. Others see the record
// from then on.
func (b *bench) addFailing(disk *crashfs.FS) {
	b.t.Helper()
	stop := failing(disk, func(o crashfs.Op) bool {
		return o.Kind == crashfs.KindDatasync && strings.Contains(o.Path, "/journal-") ||
			o.Kind == crashfs.KindSync && strings.Contains(o.Path, "/.journal-")
	})
	defer stop()
	b.commit(true)
}

// commit appends a message and begins a new journal if the sync fails, as the engine does. failed says that this fails
// too.
func (b *bench) commit(failed bool) {
	b.t.Helper()
	ctx := stdcontext.Background()
	b.must(b.dir.Lock.Acquire(ctx))
	defer func() { b.must(b.dir.Lock.Release()) }()
	if err := b.log.Prepare(); failed && err != nil {
		return // it cannot replace the journal, and has written nothing
	} else {
		b.must(err)
	}
	item := b.next()
	c := b.log.Append([]Item{item})
	b.must(c.Err)
	err := c.Wait()
	if err != nil {
		var ok bool
		if ok, err = b.log.Recommit(c); err == nil && !ok {
			err = errors.New("it is not among what was written again")
		}
	}
	if failed == (err == nil) {
		b.t.Fatalf("appending: %v", err)
	}
	b.ids = append(b.ids, item.Envelope.ID)
}

// fill appends messages until the next one makes the journal longer.
func (b *bench) fill() {
	j := b.log.state.newest()
	for one := int64(0); j.end+one < j.allocated; {
		before := j.end
		b.commit(false)
		one = j.end - before
	}
}

// choices are the ways in which a power cut may leave the disk: three extremes, and so many random ones.
func choices(random uint64) []crashfs.Choice {
	all := []crashfs.Choice{crashfs.Lose, crashfs.ZeroFill, crashfs.Keep}
	for seed := range random {
		all = append(all, crashfs.Random(seed))
	}
	return all
}

// survives cuts the power in several ways and checks that the messages survive.
func (b *bench) survives(disk *crashfs.FS) {
	b.t.Helper()
	for _, how := range choices(20) {
		left := *b
		left.fs = disk.Crash(how)
		left.open(b.dir.ID)
		left.shows(len(b.ids))
		for i := range b.ids {
			e := left.recordAt(int64(i))
			if _, ok := left.log.ReadRecord(e); !ok {
				if _, is, err := e.ReadFile(left.dir, "branch-main"); is != FileExact {
					b.t.Errorf("%s: message %d: %v", how, i, err)
				}
			}
		}
		if p, err := left.log.Problems(); err != nil || len(p) > 0 {
			b.t.Errorf("%s: %v, %v", how, p, err)
		}
		left.close()
	}
}

// TestAppendAfterAFailedSync lets a process end after the system refused its record. A record that the next process
// acknowledges must survive a power cut, with all records before it.
func TestAppendAfterAFailedSync(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	for name, next := range map[string]func(b *bench){
		"append": func(b *bench) { b.commit(false) },
		"barrier": func(b *bench) {
			b.must(b.dir.Lock.Acquire(ctx))
			b.must(b.log.Prepare())
			c := b.log.Barrier()
			b.must(b.dir.Lock.Release())
			b.must(c.Sync())
		},
		"fold":            func(b *bench) { b.must(b.log.Fold(ctx, false)) },
		"rotate":          func(b *bench) { b.must(b.rotate()) },
		"fold and settle": func(b *bench) { b.must(b.log.Fold(ctx, true)) },
		"fold, append":    func(b *bench) { b.must(b.log.Fold(ctx, false)); b.commit(false) },
		"a reader before": func(b *bench) { b.must(b.log.Refresh()); b.commit(false) },
		"torn behind it": func(b *bench) {
			b.must(b.log.Refresh())
			f, err := b.dir.FS.OpenFile(ctxfolder.JournalFile(1), os.O_RDWR)
			b.must(err)
			_, err = f.WriteAt([]byte(headChain), b.log.state.newest().end)
			b.must(err)
			b.must(f.Close())
			b.commit(false)
		},
		"another one failing": func(b *bench) { b.addFailing(b.fs.(*crashfs.FS)); b.commit(false) },
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 4 {
				folded, longer := i&1 > 0, i&2 > 0
				b, disk := newCrashBench(t)
				b.must(b.add(3, true))
				if folded {
					b.must(b.log.Fold(ctx, false))
				}
				if longer { // the refused record makes the journal longer
					b.fill()
				}
				before := b.log.state.newest().allocated
				b.addFailing(disk)
				if now := b.log.state.newest().allocated; longer != (now > before) {
					t.Errorf("longer %t, but it has %d bytes after %d", longer, now, before)
				}
				b.close()
				other := b.process(disk)
				next(other)
				other.survives(disk)
			}
		})
	}
}

// TestPowerCutAroundReplacement cuts the power at each operation of an append after a failed sync, and after it. The
// record that could not be synced made the journal longer, so the append replaces the journal first.
func TestPowerCutAroundReplacement(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.commit(false)
	b.fill()
	b.addFailing(disk)
	b.close()
	for k, cut := 1, true; cut; k++ {
		now := disk.Clone()
		other := b.process(now)
		other.shows(len(b.ids))
		now.CutAt(len(now.Ops()) + k)
		other.ids = slices.Clone(b.ids)
		err := other.add(1, false)
		wanted := len(b.ids) - 1 // acknowledged
		if cut = now.PowerCut(); !cut {
			b.must(err)
			wanted = len(b.ids) + 1
		}
		for _, how := range choices(5) {
			left := *other
			left.fs = now.Crash(how)
			left.open(b.dir.ID)
			entries, err := left.log.Entries(b.line, 0, 1<<40)
			b.must(err)
			if len(entries) < wanted {
				t.Fatalf("power cut at operation %d, %s: %d messages, wanted %d", k, how, len(entries), wanted)
			}
			left.ids = slices.Clone(other.ids[:wanted])
			for _, e := range entries[wanted:] {
				left.ids = append(left.ids, e.ID)
			}
			left.must(left.add(1, false))
			left.shows(len(entries) + 1)
			left.cut(left.fs.(*crashfs.FS))
			left.close()
		}
	}
}

// TestAppendAfterAFailedRotation appends to a journal whose begin record another process could neither make durable nor
// remove.
func TestAppendAfterAFailedRotation(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	stop := failing(disk, func(o crashfs.Op) bool {
		return strings.HasSuffix(o.Path, "/journal-2.jsonl") && (o.Kind == crashfs.KindDatasync || o.Kind == crashfs.KindRemove)
	})
	if err := b.rotate(); err == nil {
		t.Fatal("the rotation did not fail")
	}
	b.close()
	stop()
	other := b.process(disk)
	other.commit(false)
	other.survives(disk)
}

// TestRefusedJournalTakenUp lets another process continue in a journal that the failed rotation of the first process
// could not remove. The first process must notice.
func TestRefusedJournalTakenUp(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	stop := failing(disk, func(o crashfs.Op) bool {
		return strings.HasSuffix(o.Path, "/journal-2.jsonl") && (o.Kind == crashfs.KindDatasync || o.Kind == crashfs.KindRemove)
	})
	if err := b.rotate(); err == nil {
		t.Fatal("the rotation did not fail")
	}
	stop()
	other := b.process(disk)
	other.commit(false)
	b.ids = other.ids
	b.commit(false)
	b.shows(5)
	b.survives(disk)
}

// TestFailedSyncOfAnother gives a process the error of another process's write. It must write all records to a new
// journal.
func TestFailedSyncOfAnother(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	other := b.process(disk)
	other.commit(false)
	b.ids = other.ids
	b.addFailing(disk)
	other.ids = b.ids
	other.commit(false)
	if gen, err := other.log.NewestJournal(); err != nil || gen != 2 {
		t.Errorf("it goes on in journal %d, %v", gen, err)
	}
	if size, err := other.log.state.newest().size(); err != nil || size%page != 0 {
		t.Errorf("the new journal has %d bytes, which is not the end of a page, %v", size, err)
	}
	other.survives(disk)
}

// TestForgottenRecord reads a record that the system could not write and drops before the next process writes.
func TestForgottenRecord(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	b.addFailing(disk)
	b.close()
	other := b.process(disk)
	other.shows(4)
	b.must(disk.Drop(b.dir.ID.String() + "/journal-1.jsonl"))
	other.ids = other.ids[:3]
	other.commit(false)
	other.shows(4)
	other.survives(disk)
}

// TestReplacedRecord puts a record of the same length, by another process, in the place of the dropped one.
func TestReplacedRecord(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	b.addFailing(disk)
	b.close()
	other := b.process(disk)
	other.shows(4)
	b.must(disk.Drop(b.dir.ID.String() + "/journal-1.jsonl"))
	third := b.process(disk)
	third.ids = slices.Clone(b.ids[:3])
	third.commit(false)
	if was, now := other.recordAt(3), third.recordAt(3); was.off != now.off || was.Size != now.Size {
		t.Fatalf("a record of %d bytes at %d is not in the place of one of %d bytes at %d", now.Size, now.off, was.Size, was.off)
	}
	other.ids = third.ids
	other.commit(false)
	other.shows(5)
	other.survives(disk)
}

// TestOneSync opens a journal with records that no mark proves durable. The process must rewrite them once and sync
// once. Marks keep that rewrite short.
func TestOneSync(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	for range 5 {
		b.commit(false)
	}
	fourth := b.recordAt(3).end() // the fifth record says that the fourth is durable
	b.close()
	other := b.process(disk)
	for i, from := range []int64{fourth, 0} {
		b.must(other.log.Refresh())
		b.must(other.log.reload())
		before := len(disk.Ops())
		end := other.end()
		other.commit(false)
		var writes, syncs []crashfs.Op
		for _, o := range disk.Ops()[before:] {
			switch o.Kind {
			case crashfs.KindWrite:
				writes = append(writes, o)
			case crashfs.KindSync, crashfs.KindDatasync, crashfs.KindSyncDir, crashfs.KindSyncAll:
				syncs = append(syncs, o)
			default:
			}
		}
		if len(syncs) != 1 {
			t.Errorf("append %d: %v", i, syncs)
		}
		if i == 0 && (len(writes) != 2 || writes[0].Off != from || writes[1].Off != end) || i == 1 && (len(writes) != 1 || writes[0].Off != end) {
			t.Errorf("append %d, behind %d: %v", i, end, writes)
		}
	}
}

func (b *bench) end() int64 {
	b.must(b.log.Refresh())
	return b.log.state.newest().end
}

// recordAt returns the entry of a position.
func (b *bench) recordAt(position int64) *Entry {
	b.t.Helper()
	entries, err := b.log.Entries(b.line, position, position+1)
	b.must(err)
	return &entries[0]
}

// marks are those of the newest journal's records.
func (b *bench) marks() (marks []uint64) {
	b.t.Helper()
	gen, err := b.log.NewestJournal()
	b.must(err)
	j, err := openJournal(b.dir, gen, nil)
	b.must(err)
	defer j.f.Close()
	n, err := j.whole()
	b.must(err)
	for _, c := range n.changes {
		marks = append(marks, c.mark)
	}
	return marks
}

// TestMarks checks that a record states up to where its writer knows all records to be durable, and no further. A
// writer that does not sync learns this from the marks of others.
func TestMarks(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.commit(false)
	b.commit(false)
	relaxed := b.process(disk)
	relaxed.log.opts.Relaxed = true
	for range 3 {
		relaxed.commit(false)
	}
	b.ids = relaxed.ids
	b.must(b.add(2, false))
	b.commit(false)
	if got, want := b.marks(), []uint64{0, 1, 1, 1, 1, 2, 2, 7}; !slices.Equal(got, want) {
		t.Errorf("the marks are %d, wanted %d", got, want)
	}
}

// TestRewrittenOnce checks that a writer that does not sync never rewrites its own records, even after it read the
// index again.
func TestRewrittenOnce(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.log.opts.Relaxed = true
	for range 3 {
		b.commit(false)
		b.must(b.log.Refresh())
		b.must(b.log.reload())
		before := len(disk.Ops())
		b.commit(false)
		if ops := disk.Ops()[before:]; len(ops) != 1 || ops[0].Kind != crashfs.KindWrite {
			t.Errorf("an append does %v", ops)
		}
	}
}

// TestRelaxedAndAFailedWriteback appends without a sync, and the system fails to write the record. It must be durable
// when a later record is acknowledged.
func TestRelaxedAndAFailedWriteback(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.commit(false)
	told := b.process(disk)
	told.commit(false)
	relaxed := told.process(disk)
	relaxed.log.opts.Relaxed = true
	for range 3 {
		relaxed.commit(false)
	}
	b.must(disk.FailWriteback(b.dir.ID.String() + "/journal-1.jsonl"))
	if err := told.log.state.newest().sync.wait(told.log.state.newest().f.Datasync, 0); err == nil {
		t.Fatal("the failed write was not reported")
	}
	other := relaxed.process(disk)
	other.commit(false)
	other.survives(disk)
}

// next is an item for the next message.
func (b *bench) next() Item {
	b.t.Helper()
	c, _, err := b.log.Counts(b.line)
	b.must(err)
	env := &message.Envelope{
		ID:       uuid.New(),
		Line:     b.line,
		Position: c.End(),
		Prev:     c.Last,
		StoredAt: time.Now().UTC().Truncate(time.Second),
		Branch:   "main",
		Body:     fmt.Appendf(nil, `{"n":%d}`, c.End()),
	}
	return Item{Kind: KindAppend, Envelope: env, Body: env.AppendTo(nil)}
}

// TestFoldBesideRecommit lets a fold count a journal while another process, whose sync failed, repeats it in a new one.
// A third process read the journals in between. It must not remove the first one before its messages have files.
func TestFoldBesideRecommit(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	for range 3 {
		b.commit(false)
	}
	other := b.process(disk)
	work, err := b.log.collect(ctx, false)
	b.must(err)
	stop := failing(disk, func(o crashfs.Op) bool {
		return o.Kind == crashfs.KindDatasync && strings.HasSuffix(o.Path, "/"+ctxfolder.JournalFile(1))
	})
	other.commit(false)
	stop()
	third := b.process(disk)
	third.ids = other.ids
	third.shows(4)
	b.must(b.log.writeRows(work))
	_, err = b.log.finishFold(work, work.journals)
	b.must(err)
	third.must(third.log.Fold(ctx, false))
	third.survives(disk)
	third.commit(false)
	third.must(third.log.Fold(ctx, true))
	third.survives(disk)
}
