package index

import (
	"bytes"
	stdcontext "context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestFoldBesideANewJournal begins a new journal that repeats records while a fold runs, which then writes rows for
// some of them. Nothing is damaged, and in the end the repeated journal is gone. A journal that was folded before is
// repeated only from there on.
func TestFoldBesideANewJournal(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		folded, rotate bool
		fails          string
	}{
		"a fold that rotates":             {false, true, "/journal-2.jsonl"},
		"a fold that keeps the journal":   {false, false, "/journal-1.jsonl"},
		"a second fold that keeps it":     {true, false, "/journal-1.jsonl"},
		"a second fold, and then rotates": {true, true, "/journal-2.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			foldBesideANewJournal(t, x.folded, x.rotate, x.fails)
		})
	}
}

func foldBesideANewJournal(t *testing.T, folded, rotate bool, fails string) {
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	if folded {
		b.must(b.log.Fold(ctx, false))
		b.must(b.add(3, true))
	}
	work, err := b.log.collect(ctx, rotate)
	b.must(err)
	b.must(work.sync())
	other := b.process(disk)
	stop := failing(disk, func(o crashfs.Op) bool {
		return o.Kind == crashfs.KindDatasync && strings.HasSuffix(o.Path, fails)
	})
	other.commit(false)
	stop()
	b.must(b.log.writeRows(work))
	_, err = b.log.finishFold(work, work.journals)
	b.must(err)
	other.survives(disk)
	for range 2 {
		other.commit(false)
		other.survives(disk)
		b.must(other.log.Fold(ctx, false))
		other.survives(disk)
	}
	if damaged, err := other.log.DamagedJournals(); err != nil || len(damaged) > 0 {
		t.Errorf("%v, %v", damaged, err)
	}
	b.must(other.log.Fold(ctx, true))
	other.survives(disk)
	if damaged, err := other.log.DamagedJournals(); err != nil || len(damaged) > 0 {
		t.Errorf("%v, %v", damaged, err)
	}
	gens, err := generations(other.dir)
	b.must(err)
	if slices.Contains(gens, 1) {
		t.Errorf("there are the journals %d", gens)
	}
}

// TestJournalBefore reads a journal/1 and continues it in a journal/2. Its records have no mark, so all of them are
// rewritten first.
func TestJournalBefore(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	whole, last := b.asBefore()
	name := ctxfolder.JournalFile(1)
	// The last record is not on the disk: the system refused it, and only the process that wrote it knows.
	b.must(b.dir.FS.Replace(name, append(slices.Clone(whole[:last]), bytes.Repeat([]byte{'\n'}, len(whole)-last)...)))
	b.must(b.dir.FS.SyncDir("."))
	f, err := b.dir.FS.OpenFile(name, os.O_RDWR)
	b.must(err)
	_, err = f.WriteAt(whole, 0)
	b.must(err)
	stop := failing(disk, func(o crashfs.Op) bool { return o.Kind == crashfs.KindDatasync })
	if f.Datasync() == nil {
		t.Fatal("the sync did not fail")
	}
	stop()
	b.must(f.Close())
	b.close()

	b = b.process(disk)
	b.shows(3)
	if id, err := StoreOf(b.dir.FS); id != testStore || err != nil {
		t.Errorf("the journal names store %s, %v", id, err)
	}
	b.commit(false)
	b.shows(4)
	if marks := b.marks(); !slices.Equal(marks, []uint64{3}) {
		t.Errorf("the marks of the newest journal are %d", marks)
	}
	for gen, version := range map[uint64]string{1: journalOne, 2: journalVersion} {
		j, err := openJournal(b.dir, gen, nil)
		b.must(err)
		if j.begin.Version != version {
			t.Errorf("journal %d is %s", gen, j.begin.Version)
		}
		b.must(j.f.Close())
	}
	for i := range b.ids {
		if _, ok := b.log.ReadRecord(b.recordAt(int64(i))); !ok {
			t.Errorf("message %d is not read from its record", i)
		}
	}
	b.survives(disk)
	for _, settle := range []bool{false, true} {
		b.must(b.log.Fold(stdcontext.Background(), settle))
		b.commit(false)
		b.shows(len(b.ids))
		b.survives(disk)
	}
}

// TestLayOutBesideANewJournal preallocates the next journal while an append, after a failed sync, begins it.
func TestLayOutBesideANewJournal(t *testing.T) {
	t.Parallel()
	for _, at := range []crashfs.Kind{crashfs.KindCreate, crashfs.KindSync, crashfs.KindRename} {
		b, disk := newCrashBench(t)
		b.must(b.add(3, true))
		other := b.process(disk)
		laying := true
		disk.Fail(func(o crashfs.Op) error {
			if laying && o.Kind == at && strings.Contains(o.Path, "/.journal-2") {
				laying = false
				other.commit(false)
			}
			if !laying && o.Kind == crashfs.KindDatasync && strings.HasSuffix(o.Path, "/journal-1.jsonl") {
				return syscall.EIO
			}
			return nil
		})
		b.must(b.log.layOut(true))
		disk.Fail(nil)
		if laying {
			t.Fatalf("nothing was laid out by %s", at)
		}
		b.ids = other.ids
		b.must(b.log.Refresh())
		b.shows(4)
		b.survives(disk)
		b.commit(false)
		b.survives(disk)
	}
}

// asBefore returns the newest journal as one of the version before, and where its last record begins.
func (b *bench) asBefore() (out []byte, last int) {
	b.t.Helper()
	gen, err := b.log.NewestJournal()
	b.must(err)
	j, err := openJournal(b.dir, gen, nil)
	b.must(err)
	defer j.f.Close()
	j.begin.Version = journalOne
	body, err := json.Marshal(j.begin)
	b.must(err)
	out, _ = appendRecord(nil, head{prev: j.begin.chain, seq: j.begin.Seq, kind: KindBegin, len: int64(len(body)), sum: bodySum(body)}, body)
	prev := j.begin.chain
	_, _, err = j.scan(j.first, j.seq, j.chain, nil, func(rec record) error {
		_, body, err := j.readWhole(rec.off, rec.off+rec.size())
		rec.prev = prev
		marked, _ := appendRecord(nil, rec.head, body)
		plain := slices.Delete(marked, atKind, atKind+markWidth)
		prev = xxhash.Sum64(plain[atPrev:plainSize])
		appendHex(plain[len(headChain):len(headChain)], prev)
		last = len(out)
		out = append(out, plain...)
		return err
	}, nil)
	b.must(err)
	return append(out, bytes.Repeat([]byte{'\n'}, space(int64(len(out))))...), last
}
