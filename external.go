package ctxdir

import (
	"context"
	"errors"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// ContextID returns the id of the context with a kind and an external id, whether or not it exists. It is the same in
// every store. So a framework passes its own id to [Store.Use] or [Store.Remove] without a search.
func ContextID(kind, externalID string) uuid.UUID {
	return ctxfolder.ExternalContextID(kind, externalID)
}

// UseOrCreate opens the context that m.Kind and m.ExternalID name, and calls f as [Store.Use] does. If there is none, it
// creates the context from m first, as [Store.OpenOrCreate] does. It returns the error of f.
func (s *Store) UseOrCreate(ctx context.Context, m Metadata, f func(c *Context) error) error {
	const attempts = 10 // others may remove it meanwhile
	var err error
	for range attempts {
		called := false
		err = s.Use(ctx, ContextID(m.Kind, m.ExternalID), func(c *Context) error {
			called = true
			return f(c)
		})
		if called || !errors.Is(err, ErrNotExist) {
			return err
		}
		c, err := s.OpenOrCreate(ctx, m)
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return err
}
