package trash

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// purges are the contexts that lost messages, or versions of them, for good.
type purges map[uuid.UUID]bool

func (p purges) add(t engine.TrashItem) {
	if t.Context != uuid.Nil {
		p[t.Context] = true
	}
}

func (p purges) addPurged(x CollectResult, dryRun bool) {
	if x.Purged && !dryRun {
		p.add(x.TrashItem)
	}
}

// forget removes what was purged from the folder of derived data, whatever error ended the purge.
func (p purges) forget(ctx context.Context, s *engine.Store, err error) error {
	var ids []uuid.UUID
	for id := range p {
		ids = append(ids, id)
	}
	return errors.Join(err, s.EndForgetting(context.WithoutCancel(ctx), ids...))
}
