package index

import (
	stdcontext "context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// TestSettleOthersFiles fails to write a message's file and reports that to another process only. A settle must write
// the file again before the journal goes: it looks right as long as it is in memory.
func TestSettleOthersFiles(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	for name, fold := range map[string]func(*bench) error{
		"a journal for each fold": (*bench).rotate,
		"one journal":             func(b *bench) error { return b.log.Fold(ctx, false) },
		"no fold":                 func(*bench) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b, disk := newCrashBench(t)
			for range 3 {
				b.must(b.add(2, true))
				b.must(fold(b))
			}
			b.must(disk.FailWriteback(b.messagePath(0)))
			if b.fs.SyncAll() == nil {
				t.Fatal("the failed write was not reported")
			}
			b.close()
			other := b.process(disk)
			b.must(other.log.Fold(ctx, true))
			b.must(other.add(1, true))
			b.must(other.log.Fold(ctx, true))
			if gens, err := generations(other.dir); err != nil || slices.Contains(gens, 1) {
				t.Fatalf("there are the journals %d, %v", gens, err)
			}
			other.survives(disk)
		})
	}
}

func (b *bench) messagePath(i int) string {
	return b.dir.ID.String() + "/" + ctxfolder.Messages + "/branch-main/" + ctxfolder.MessageFile(b.ids[i])
}

// TestSettleTogether checks that the one report of a failed write is not lost when several contexts of a process share
// a descriptor.
func TestSettleTogether(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	neighbour := *b
	m := &ctxfolder.Metadata{ID: uuid.New(), ActiveBranch: "main", CreatedAt: time.Now(), Revision: 1}
	neighbour.line, neighbour.ids = uuid.New(), nil
	_, err := branch.New(m, "main", neighbour.line)
	b.must(err)
	begin, err := BeginFiles(m, testStore)
	b.must(err)
	b.must(ctxfolder.Create(ctx, disk, m, begin))
	neighbour.open(m.ID)
	defer neighbour.close()
	b.must(b.log.Refresh())
	for _, c := range []*bench{b, &neighbour} {
		for range 3 {
			c.must(c.add(2, true))
			c.must(c.rotate())
		}
	}
	b.must(disk.FailWriteback(b.messagePath(0)))
	b.must(neighbour.log.Fold(ctx, true)) // which is told
	b.must(b.log.Fold(ctx, true))
	b.survives(disk)
	neighbour.survives(disk)
}

// TestSettleOthersPayloads is TestSettleOthersFiles for the blob of a payload.
func TestSettleOthersPayloads(t *testing.T) {
	t.Parallel()
	ctx := stdcontext.Background()
	b, disk := newCrashBench(t)
	b.must(b.dir.Lock.Acquire(ctx))
	b.must(b.log.Prepare())
	c := b.log.Append([]Item{PayloadItem(Sum{1}, []byte("payload")), b.next()})
	b.must(c.Err)
	b.must(c.Wait())
	b.must(b.dir.Lock.Release())
	b.close()
	other := b.process(disk)
	kept := &keptPayloads{}
	other.log.opts.Payloads = kept
	b.must(other.log.Fold(ctx, true))
	if kept.n != 1 || !kept.durable {
		t.Errorf("%d payloads were stored, durably %t", kept.n, kept.durable)
	}
	// What this process has appended itself the system would tell it of.
	*kept = keptPayloads{}
	b.must(other.dir.Lock.Acquire(ctx))
	b.must(other.log.Prepare())
	c = other.log.Append([]Item{PayloadItem(Sum{2}, []byte("another"))})
	b.must(c.Err)
	b.must(c.Wait())
	b.must(other.dir.Lock.Release())
	b.must(other.log.Fold(ctx, true))
	if kept.n == 0 || kept.durable {
		t.Errorf("%d payloads of its own were stored, durably %t", kept.n, kept.durable)
	}
}

type keptPayloads struct {
	n       int
	durable bool
}

func (k *keptPayloads) Keep(payloads iter.Seq[[]byte], durable bool) error {
	for range payloads {
		k.n++
	}
	k.durable = durable
	return nil
}
