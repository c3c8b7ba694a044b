package index

import (
	stdcontext "context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// newCrashBench is newBench on a disk that can lose power.
func newCrashBench(t *testing.T) (*bench, *crashfs.FS) {
	disk := crashfs.New()
	b := &bench{t: t, fs: disk, line: uuid.New()}
	for _, d := range []string{ctxfolder.Locks, ctxfolder.Staging} {
		b.must(disk.Mkdir(d))
	}
	m := &ctxfolder.Metadata{ID: uuid.New(), ActiveBranch: "main", CreatedAt: time.Now(), Revision: 1}
	_, err := branch.New(m, "main", b.line)
	b.must(err)
	begin, err := BeginFiles(m, testStore)
	b.must(err)
	b.must(ctxfolder.Create(stdcontext.Background(), disk, m, begin))
	b.open(m.ID)
	return b, disk
}

// cut opens what is left of the disk in the worst case.
func (b *bench) cut(disk *crashfs.FS) {
	left := *b
	left.fs = disk.Crash(crashfs.Lose)
	left.open(b.dir.ID)
	defer left.close()
	left.shows(len(b.ids))
}

// rotate folds with a new journal and does not settle: so does a fold that cannot write the message files.
func (b *bench) rotate() error {
	if err := b.dir.FoldLock.Acquire(stdcontext.Background()); err != nil {
		return err
	}
	defer b.dir.FoldLock.Release()
	if err := b.log.layOut(true); err != nil {
		return err
	}
	work, err := b.log.collect(stdcontext.Background(), true)
	if err != nil {
		return err
	}
	if err := errors.Join(work.sync(), b.log.writeRows(work)); err != nil {
		return err
	}
	b.log.advance.Lock()
	defer b.log.advance.Unlock()
	return b.log.commit(work, work.journals)
}

// TestAppendsDuringAFold appends between the parts of a fold, which keeps the journal or begins a new one: the messages
// are durable as ever.
func TestAppendsDuringAFold(t *testing.T) {
	t.Parallel()
	for _, rotate := range []bool{false, true} {
		b, disk := newCrashBench(t)
		for range 2 { // the second fold begins at an offset
			b.must(b.add(3, true))
			work, err := b.log.collect(stdcontext.Background(), rotate)
			b.must(err)
			b.cut(disk)
			b.must(b.add(1, true))
			b.must(work.sync())
			b.cut(disk)
			b.must(b.log.writeRows(work))
			b.must(b.add(1, true))
			b.cut(disk)
			_, err = b.log.finishFold(work, work.journals)
			b.must(err)
			b.cut(disk)
			b.must(b.add(1, true))
			b.cut(disk)
		}
	}
}

// TestRotationCoversOthersRecords rotates after another process wrote a record and did not sync it. The record must be
// durable before a later one, in the next journal, is acknowledged.
func TestRotationCoversOthersRecords(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.must(b.add(2, true))
	other := *b
	other.open(b.dir.ID)
	ctx := stdcontext.Background()
	b.must(other.dir.Lock.Acquire(ctx))
	b.must(other.log.Prepare())
	env := &message.Envelope{ID: uuid.New(), Line: b.line, Position: 2, Prev: b.ids[1], StoredAt: time.Now().UTC(), Body: []byte(`{}`)}
	unsynced := other.log.Append([]Item{{Kind: KindAppend, Envelope: env, Body: env.AppendTo(nil)}})
	b.must(unsynced.Err)
	b.must(other.dir.Lock.Release())
	b.ids = append(b.ids, env.ID)
	_, err := b.log.collect(ctx, true)
	b.must(err)
	b.must(b.add(1, true))
	b.cut(disk)
	b.must(unsynced.Wait())
}

// TestRotationFails lets the begin record of a new journal fail to become durable. That journal must never count,
// whatever a power cut leaves of it. Records acknowledged afterwards, by any process, must survive in the previous
// journal.
func TestRotationFails(t *testing.T) {
	t.Parallel()
	for _, also := range []crashfs.Kind{"", crashfs.KindRemove, crashfs.KindSyncDir} {
		b, disk := newCrashBench(t)
		b.must(b.add(3, true))
		broken, failed := true, false
		disk.Fail(func(o crashfs.Op) error {
			first := o.Kind == crashfs.KindDatasync && strings.HasSuffix(o.Path, "journal-2.jsonl")
			if broken && (first || failed && o.Kind == also) {
				failed = true
				return syscall.EIO
			}
			return nil
		})
		if err := b.log.Fold(stdcontext.Background(), true); err == nil {
			t.Fatal("the rotation did not fail")
		}
		broken = false
		b.must(b.add(2, true))
		for _, how := range choices(50) {
			left := *b
			left.fs = disk.Crash(how)
			left.open(b.dir.ID)
			left.shows(len(b.ids))
			left.close()
		}
	}
}
