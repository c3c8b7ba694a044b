package soak

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// follower follows a store: no commit of a context comes twice, or behind a later one.
func follower(ctx context.Context, dir string) error {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := s.Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Close()              //nolint:errcheck // it only reads
	at := map[uuid.UUID]uint64{} // the newest commit of each context that came whole
	for e := range w.Events(ctx) {
		did.Add(1)
		switch {
		case e.Kind == ctxdir.EventProblem:
			if !passing(e.Problem) {
				return fmt.Errorf("following: %w", e.Problem)
			}
		case e.Kind == ctxdir.EventResync:
			return fmt.Errorf("following: commits of context %s are missing up to %d", e.Context, e.Seq)
		case e.Kind == ctxdir.EventContext:
			delete(at, e.Context)
		case e.Seq > 0 && e.Seq <= at[e.Context]:
			return fmt.Errorf("following: commit %d of context %s came behind %d", e.Seq, e.Context, at[e.Context])
		case e.Seq > 0 && !e.More:
			at[e.Context] = e.Seq
		}
	}
	return ctx.Err()
}
