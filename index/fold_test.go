package index

import (
	"bytes"
	stdcontext "context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// newFolded returns a context whose journal is folded up to an offset, with records after it.
func newFolded(t *testing.T) *bench {
	b := newBench(t)
	for range 2 {
		b.must(b.add(5, true))
		b.must(b.log.Fold(stdcontext.Background(), false))
	}
	b.must(b.add(3, true))
	if x := b.index(); x.Live != 1 || x.Offset == 0 || x.Seq != 10 {
		t.Fatalf("the index counts %d records, up to byte %d of journal %d", x.Seq, x.Offset, x.Live)
	}
	return b
}

func (b *bench) index() *indexFile {
	b.t.Helper()
	x, err := readIndexFile(b.dir)
	b.must(err)
	return x
}

// replaceIndex replaces index.json.
func (b *bench) replaceIndex(x *indexFile) {
	b.t.Helper()
	raw, err := x.encode()
	b.must(err)
	b.must(os.WriteFile(filepath.Join(b.root, ctxfolder.IndexFile), raw, 0o600))
}

// intact checks that the log shows every message and found no fault.
func (b *bench) intact() {
	b.t.Helper()
	b.shows(len(b.ids))
	if p, err := b.log.Problems(); err != nil || len(p) > 0 {
		b.t.Fatalf("%v, %v", p, err)
	}
	for i := range b.ids {
		if _, ok := b.log.ReadRecord(b.recordAt(int64(i))); !ok {
			b.t.Errorf("message %d is not read from its record", i)
		}
	}
}

// TestOpenAfterTheFold damages a folded record: an open does not read it, and a check does. A fold that settles moves
// the journal to the trash.
func TestOpenAfterTheFold(t *testing.T) {
	t.Parallel()
	b := newFolded(t)
	raw, err := os.ReadFile(b.journal(1))
	b.must(err)
	raw[bytes.Index(raw, []byte(`"message":{"n":2}`))] ^= 1
	b.must(os.WriteFile(b.journal(1), raw, 0o600))
	b.reopen()
	b.shows(13)
	if p, err := b.log.Problems(); err != nil || len(p) > 0 {
		t.Fatalf("%v, %v", p, err)
	}
	if damaged, err := b.log.DamagedJournals(); err != nil || len(damaged) != 1 || damaged[1] == nil {
		t.Fatalf("damaged journals %v, %v", damaged, err)
	}
	b.must(b.log.Fold(stdcontext.Background(), true))
	b.shows(13)
	if damaged, err := b.log.DamagedJournals(); err != nil || len(damaged) > 0 || b.trashed() != 1 {
		t.Errorf("damaged journals %v, %v; %d in the trash", damaged, err, b.trashed())
	}
}

// TestWrongOffset gives index.json offsets where its last record does not begin. A reader then reads the whole journal.
func TestWrongOffset(t *testing.T) {
	t.Parallel()
	b := newFolded(t)
	right := b.index()
	first := b.recordAt(0).off
	for _, offset := range []int64{1, first, first + 1, b.recordAt(8).off, b.recordAt(10).off, right.Offset + 1, b.end(), 1 << 40, 1<<63 - 1} {
		x := *right
		x.Offset = offset
		b.replaceIndex(&x)
		b.reopen()
		b.intact()
		b.must(b.add(1, true))
		b.intact()
	}
	b.must(b.log.Fold(stdcontext.Background(), false))
	b.reopen()
	b.intact()
	x := *right
	x.Offset = -1
	b.replaceIndex(&x)
	b.reopen()
	if p, err := b.log.Problems(); err != nil || len(p) != 1 {
		t.Errorf("a negative offset: %v, %v", p, err)
	}
}

// TestOlderIndexBesideJournal restores an older index.json: the journal still has what it does not count.
func TestOlderIndexBesideJournal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var older []*indexFile
	for range 4 {
		older = append(older, b.index())
		b.must(b.add(5, true))
		b.must(b.log.Fold(stdcontext.Background(), false))
	}
	for i, x := range older {
		b.replaceIndex(x)
		b.reopen()
		b.intact()
		b.must(b.add(1, true))
		if i%2 > 0 {
			b.must(b.log.Fold(stdcontext.Background(), false))
		}
		b.reopen()
		b.intact()
	}
}

// TestNewerIndexBesideJournal restores an older journal beside a newer index.json, or another journal of that length.
// The index is rebuilt, and the message files give back what the journal does not have.
func TestNewerIndexBesideJournal(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bench, older []byte) []byte{
		"older":    func(_ *bench, older []byte) []byte { return older },
		"cut":      func(b *bench, _ []byte) []byte { return append(b.used(1)[:b.index().Offset], '\n') },
		"cut head": func(b *bench, _ []byte) []byte { return append(b.used(1)[:b.index().Offset+100], '\n') },
		"zeros": func(b *bench, _ []byte) []byte {
			raw := b.used(1)
			clear(raw[b.index().Offset : b.index().Offset+50])
			return raw
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.must(b.add(3, true))
			older, err := os.ReadFile(b.journal(1))
			b.must(err)
			for range 2 {
				b.must(b.add(4, true))
				b.must(b.log.Fold(stdcontext.Background(), false))
			}
			b.must(os.WriteFile(b.journal(1), spoil(b, older), 0o600))
			b.reopen()
			b.shows(11)
			if p, err := b.log.Problems(); err != nil || len(p) == 0 {
				t.Errorf("%v, %v", p, err)
			}
			b.must(b.add(1, true))
			b.reopen()
			b.shows(12)
			b.must(b.log.Fold(stdcontext.Background(), true))
			b.reopen()
			b.shows(12)
			if p, err := b.log.Problems(); err != nil || len(p) > 0 {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
}

// TestRotationAtSize folds until the journal is large: then there is a new one, and the large one is settled.
func TestRotationAtSize(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.log.opts.FoldBytes, b.log.opts.Retain = 2000, 3
	rotations := 0
	for range 12 {
		for !b.log.FoldDue(2000) {
			b.must(b.add(1, true))
		}
		j := b.log.state.newest()
		large := j.end-j.first >= 6000
		b.must(b.log.Fold(stdcontext.Background(), false))
		if b.log.FoldDue(2000) {
			t.Fatal("a fold is due after a fold")
		}
		x := b.index()
		if large != (x.Live > j.gen) {
			t.Errorf("journal %d with %d bytes, and then %d", j.gen, j.end-j.first, x.Live)
		}
		if large {
			rotations++
		}
		if there, folded := b.journals(); len(there) > 2 || len(folded) > 1 || x.Live > 1 && x.Settled != x.Live-1 {
			t.Errorf("journals %d, folded %d, live %d, settled %d", there, folded, x.Live, x.Settled)
		}
		b.survives(disk)
	}
	if rotations < 2 {
		t.Errorf("%d rotations", rotations)
	}
}

// TestFoldBesideAnotherFold makes a fold due in two processes. When one has folded, it is not due in the other.
func TestFoldBesideAnotherFold(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	other := b.process(disk)
	for _, l := range []*Log{b.log, other.log} {
		l.opts.FoldBytes = 2000
	}
	b.must(b.add(10, true))
	b.must(other.log.Refresh())
	if !b.log.FoldDue(2000) || !other.log.FoldDue(2000) {
		t.Fatal("no fold is due")
	}
	b.must(b.log.Fold(stdcontext.Background(), false))
	if other.log.FoldDue(2000) {
		t.Error("the other process folds again")
	}
}

// TestSyncBeforeRows fails the sync of a fold: records that a power cut may take get no rows.
func TestSyncBeforeRows(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	b.must(b.log.Fold(ctx, false))
	b.log.opts.Relaxed = true
	b.must(b.add(3, true))
	unsynced := slices.Clone(b.ids[3:])
	from := len(disk.Ops())
	stop := failing(disk, func(o crashfs.Op) bool { return o.Kind == crashfs.KindDatasync })
	if err := b.log.Fold(ctx, false); err == nil {
		t.Fatal("the fold did not fail")
	}
	stop()
	for _, o := range disk.Ops()[from:] {
		if o.Kind == crashfs.KindWrite && strings.Contains(o.Path, ".rows") {
			t.Errorf("%v", o)
		}
	}
	b.ids = b.ids[:3]
	left := *b
	left.fs = disk.Crash(crashfs.Lose)
	left.open(b.dir.ID)
	left.shows(3)
	left.close()
	b.ids = append(b.ids, unsynced...)
	b.must(b.log.Fold(ctx, false)) // in a new journal
	b.survives(disk)
}

// TestLookUpInTheLiveJournal looks for messages without files, and a payload, in the folded part of the live journal.
func TestLookUpInTheLiveJournal(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b := newBench(t)
	sum := Sum{1}
	for range 3 {
		b.must(b.add(2, false))
		b.must(b.log.Fold(ctx, false))
	}
	b.must(b.dir.Lock.Acquire(ctx))
	b.must(b.log.Prepare())
	c := b.log.Append([]Item{PayloadItem(sum, []byte("payload"))})
	b.must(b.dir.Lock.Release())
	b.must(c.Err)
	b.must(c.Wait())
	b.must(b.log.Fold(ctx, false))
	for range 3 {
		for i, id := range b.ids {
			if e, ok, err := b.log.Find(b.line, id, 100, false); !ok || err != nil || e.Position != int64(i) {
				t.Errorf("message %d: %+v, %v, %v", i, e, ok, err)
			}
		}
		if p, err := b.log.Payload(sum, true); string(p) != "payload" || err != nil {
			t.Errorf("payload %q, %v", p, err)
		}
		if b.log.PayloadSettled(sum) {
			t.Error("the payload counts as settled")
		}
		if len(b.ids) > 6 {
			b.reopen()
		}
		b.must(b.add(1, false))
		b.must(b.log.Fold(ctx, false)) // a search continues where the last one ended
	}
}

// TestRebuildFromTheLiveJournal zeroes a part of a folded record, as only damage does. A rebuild takes the records
// after it, although no message file proves that they were acknowledged.
func TestRebuildFromTheLiveJournal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.add(5, false))
	b.must(b.log.Fold(stdcontext.Background(), false))
	b.must(b.add(3, false))
	raw, err := os.ReadFile(b.journal(1))
	b.must(err)
	e := b.recordAt(2)
	clear(raw[int(e.off)+headSize : int(e.off)+headSize+100])
	b.must(os.WriteFile(b.journal(1), raw, 0o600))
	b.must(os.RemoveAll(filepath.Join(b.root, "index")))
	b.reopen()
	entries, err := b.log.Entries(b.line, 0, 100)
	b.must(err)
	for i, e := range entries {
		if e.ID != b.ids[i] || (e.Lost != "") != (i == 2) {
			t.Errorf("position %d: %+v", i, e)
		}
	}
	if len(entries) != 8 {
		t.Errorf("%d messages", len(entries))
	}
}

// TestFoldSettlesAtRotation checks that a fold that keeps the journal makes no message file durable: that is slow.
func TestFoldSettlesAtRotation(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	for _, settle := range []bool{true, false, false} {
		b.must(b.add(3, true))
		from := len(disk.Ops())
		b.must(b.log.Fold(stdcontext.Background(), settle))
		settled := slices.ContainsFunc(disk.Ops()[from:], func(o crashfs.Op) bool { return o.Kind == crashfs.KindSyncAll })
		if settled != settle {
			t.Errorf("settled: %v, wanted %v", settled, settle)
		}
	}
}

// TestFollowAfterTheFold follows a context whose journal has a damaged folded record: a follower does not read it.
func TestFollowAfterTheFold(t *testing.T) {
	t.Parallel()
	b := newFolded(t)
	raw, err := os.ReadFile(b.journal(1))
	b.must(err)
	clear(raw[b.recordAt(2).off:b.recordAt(3).off])
	b.must(os.WriteFile(b.journal(1), raw, 0o600))
	counts, _, err := b.log.Counts(b.line)
	b.must(err)
	for seq := uint64(10); seq <= 14; seq++ {
		tail, err := FollowFrom(b.follow(), seq)
		if seq == 14 {
			tail, err = FollowEnd(b.follow())
		}
		b.must(err)
		ids, err := tailed(t, tail)
		b.must(err)
		if want := b.ids[min(seq, 13):]; !slices.Equal(ids, want) || tail.At().Seq != 13 || tail.Counts()[b.line] != counts {
			t.Errorf("from %d: %d messages, %d wanted, at %d; %+v", seq, len(ids), len(want), tail.At().Seq, tail.Counts())
		}
		if tail.Metadata() == nil {
			t.Errorf("from %d: no metadata", seq)
		}
		tail.Close()
	}
}

// TestExtendOnce lets one process preallocate space. Another one does not do it again.
func TestExtendOnce(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	other := b.process(disk)
	b.must(other.log.Refresh())
	size := other.log.state.newest().allocated
	for b.end() < size {
		b.must(b.add(1, false))
	}
	other.ids = b.ids
	from := len(disk.Ops())
	b.must(other.add(1, false))
	for _, o := range disk.Ops()[from:] {
		if o.Kind == crashfs.KindWrite && o.Off+o.Size > b.log.state.newest().end+4096 {
			t.Errorf("%v", o)
		}
	}
	other.shows(len(other.ids))
}
