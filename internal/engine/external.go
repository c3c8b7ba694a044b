package engine

import (
	"context"
	"errors"
	"fmt"
)

// OpenOrCreate opens the context with the kind and the external id of m, or creates it with m. Several processes that
// call it at once get the same context. It fails with [ErrInvalid] without an external id.
func (s *Store) OpenOrCreate(ctx context.Context, m Metadata) (*Context, error) {
	c, err := s.openOrCreate(ctx, m)
	return c, Wrap(Error{Op: "open", Context: m.ID}, err)
}

func (s *Store) openOrCreate(ctx context.Context, m Metadata) (c *Context, err error) {
	if m.ExternalID == "" {
		return nil, fmt.Errorf("%w: the external id is missing", ErrInvalid)
	}
	if err := m.TakeExternalID(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	const attempts = 10 // others may create and remove it meanwhile
	for range attempts {
		if c, err = s.Context(ctx, m.ID); !errors.Is(err, ErrNotExist) {
			return c, err
		}
		if c, err = s.Create(ctx, m); !errors.Is(err, ErrExist) {
			return c, err
		}
	}
	return nil, err
}
