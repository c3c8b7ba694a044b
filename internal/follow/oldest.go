package follow

import (
	"context"
	"errors"
	"sort"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// Oldest returns the number after which the journals of a context have every commit: a follower from there on, or from
// later, is sent no [Resync].
func Oldest(ctx context.Context, c *engine.Context) (uint64, error) {
	newest, err := c.Log.Seq()
	if err != nil {
		return 0, err
	}
	var failed error
	from := sort.Search(int(newest), func(from int) bool {
		has, err := hasCommits(ctx, c, uint64(from))
		if failed == nil {
			failed = err
		}
		return has || err != nil
	})
	return uint64(from), failed
}

// hasCommits reports whether the journals have every commit after a number.
func hasCommits(ctx context.Context, c *engine.Context, from uint64) (bool, error) {
	w, err := WatchContext(ctx, c, from)
	if err != nil {
		return false, err
	}
	for e, err := range w.Pending(ctx) {
		return e.Kind != Resync && err == nil, errors.Join(err, w.Close())
	}
	return true, w.Close()
}
