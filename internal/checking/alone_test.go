package checking_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRepairUnreferredLocks: who refers to a blob is waited for, and a blob that he has put in the place of the damaged
// one stays.
func TestRepairUnreferredLocks(t *testing.T) {
	ctx := context.Background()
	p, payload, _, path := kit.NewUnreferenced(t, engine.WithLockTimeout(time.Millisecond))
	writer := engine.BlobHold{Store: kit.Must[*engine.Store](t)(kit.Open(p.Store.Path()))}
	defer writer.Store.Close()
	kit.Check(t, writer.Hold(ctx))
	var failed error
	for r, err := range checking.Repair(ctx, p.Store, nil, checking.Options{}) {
		if failed = errors.Join(failed, err); err == nil {
			t.Errorf("beside a writer it did %+v", r)
		}
	}
	if _, err := os.Lstat(path); err != nil || !errors.Is(failed, engine.ErrLocked) {
		t.Errorf("beside a writer: %v, %v", failed, err)
	}
	writer.Release()

	left, err := checking.RepairBlobs(ctx, p.Store, func() error { return kit.PutOnly(p.Store, payload) }, func(r integrity.Repaired) bool {
		t.Errorf("it did %+v", r)
		return true
	})
	if left != 0 || err != nil || p.Store.Blobs.Verify(blob.SumOf(payload)) != nil {
		t.Errorf("a blob was put in the place of the damaged one: %d left, %v, %v", left, err, p.Store.Blobs.Verify(blob.SumOf(payload)))
	}
}
