package replica

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Unconfirmed returns how many messages are erased in a store, while a peer, which is known by its id, has not confirmed that it
// erased them.
func Unconfirmed(ctx context.Context, f *Folder, peer uuid.UUID) (n int64, err error) {
	disk, err := f.disk()
	if err != nil {
		return 0, err
	}
	defer disk.Close()
	for id, a := range readAgreements(disk, peer).all {
		known := map[uuid.UUID]bool{}
		for _, m := range a.Erased {
			known[m] = true
		}
		err := f.s.Use(ctx, id, func(c *ctxdir.Context) error {
			rows, err := changes(ctx, c, a.Local, func(r *ctxdir.Row) bool { return r.Erased && !known[r.ID] })
			if errors.Is(err, ctxdir.ErrNotExist) {
				rows, err = changes(ctx, c, "", func(r *ctxdir.Row) bool { return r.Erased && !known[r.ID] })
			}
			n += int64(len(erasedIn(rows)))
			return err
		})
		if err != nil && !errors.Is(err, ctxdir.ErrNotExist) {
			return n, err
		}
	}
	return n, nil
}
