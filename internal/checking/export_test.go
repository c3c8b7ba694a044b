package checking

import (
	"context"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// RepairBlobs repairs the blobs as a repair of the whole store does, after before ran with writers still admitted.
func RepairBlobs(ctx context.Context, s *engine.Store, before func() error, tell func(integrity.Repaired) bool) (left int, err error) {
	c := newChecker(s, Options{})
	c.payloads.Alone = func(ctx context.Context, f func() error) error {
		if err := before(); err != nil {
			return err
		}
		return s.BlobsAlone(ctx, f)
	}
	for id := range s.IDs() {
		err := c.withContext(id, func(x *integrity.Context) error { return x.Check(ctx, func(integrity.Finding) bool { return true }) })
		if err != nil {
			return 0, err
		}
	}
	return c.outside().repairBlobs(ctx, false, tell)
}
