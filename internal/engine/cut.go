package engine

import (
	"context"
	"sync/atomic"

	"github.com/google/uuid"
)

// cutHook erases what was made from messages that a purge is about to cut.
type cutHook struct {
	f atomic.Pointer[func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error]
}

// OnCut sets the function that erases what was made from messages of a context: see [Store.BeforeCut].
func (s *Store) OnCut(f func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error) {
	s.cut.f.Store(&f)
}

// BeforeCut erases what was made from messages of a context, before a purge removes them. The caller holds
// [CollectionLock], and no lock of the context.
func (s *Store) BeforeCut(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error {
	if f := s.cut.f.Load(); f != nil && len(messages) > 0 {
		return (*f)(ctx, c, messages)
	}
	return nil
}
