package rows

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir"
)

// opened is a store of ours and its only context, for rows that need more of the library than engines have in common.
type opened struct {
	s *ctxdir.Store
	c *ctxdir.Context
}

// openAlone opens a store of ours that has one context.
func openAlone(ctx context.Context, dir string, opts ...ctxdir.Options) (*opened, error) {
	s, err := ctxdir.Open(dir, opts...)
	if err != nil {
		return nil, err
	}
	for id, err := range s.IDs() {
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		c, err := s.Open(ctx, id)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return &opened{s, c}, nil
	}
	return nil, errors.Join(errors.New("the store has no context"), s.Close())
}

func (o *opened) close() error { return errors.Join(o.c.Close(), o.s.Close()) }
