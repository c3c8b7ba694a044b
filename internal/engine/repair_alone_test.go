package engine

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/integrity"
)

// TestRepairUnreferredLocks: who refers to a blob is waited for, and a blob that he has put in the place of the damaged one stays.
func TestRepairUnreferredLocks(t *testing.T) {
	ctx := context.Background()
	p, payload, _, path := unreferred(t, WithLockTimeout(time.Millisecond))
	writer := blobsInUse{s: must[*Store](t)(Open(p.store.Path()))}
	defer writer.s.Close()
	check(t, writer.hold(ctx))
	var failed error
	for r, err := range p.store.Repair(ctx, nil, CheckOptions{}) {
		if failed = errors.Join(failed, err); err == nil {
			t.Errorf("beside a writer it did %+v", r)
		}
	}
	if _, err := os.Lstat(path); err != nil || !errors.Is(failed, ErrLocked) {
		t.Errorf("beside a writer: %v, %v", failed, err)
	}
	writer.release()

	c := p.store.newChecking(CheckOptions{})
	c.payloads.Alone = func(ctx context.Context, f func() error) error {
		check(t, putOnly(p.store, payload))
		return p.store.blobsAlone(ctx, f)
	}
	for id := range p.store.IDs() {
		check(t, c.with(id, func(x *integrity.Context) error { return x.Check(ctx, func(Finding) bool { return true }) }))
	}
	left, err := c.store().RepairBlobs(ctx, false, func(r Repaired) bool { t.Errorf("it did %+v", r); return true })
	if left != 0 || err != nil || p.store.blobs.Verify(blob.SumOf(payload)) != nil {
		t.Errorf("a blob was put in the place of the damaged one: %d left, %v, %v", left, err, p.store.blobs.Verify(blob.SumOf(payload)))
	}
}
