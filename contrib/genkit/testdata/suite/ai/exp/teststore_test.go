package exp

import (
	"context"
	"sync"
)

// TestState is what agents of the tests have as state.
type TestState = testState

// NewSwap is set by another package: the adapter imports this one.
var NewSwap func() SessionStore[testState]

// testInMemStore is the adapter, with a copy of what was saved for tests that count it. As the one that it replaces, and
// unlike the stores of localstore, it takes snapshots without a session.
type testInMemStore[State any] struct {
	SessionStore[State]
	SnapshotSubscriber

	mu        sync.RWMutex
	snapshots map[string]*SessionSnapshot[State]
}

func newTestInMemStore[State any]() *testInMemStore[State] {
	s := any(NewSwap()).(SessionStore[State])
	return &testInMemStore[State]{SessionStore: s, SnapshotSubscriber: s.(SnapshotSubscriber), snapshots: map[string]*SessionSnapshot[State]{}}
}

func (s *testInMemStore[State]) snapshotCount() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.snapshots)
}

func (s *testInMemStore[State]) SaveSnapshot(ctx context.Context, id string, fn func(*SessionSnapshot[State]) (*SessionSnapshot[State], error)) (*SessionSnapshot[State], error) {
	saved, err := s.SessionStore.SaveSnapshot(ctx, id, func(was *SessionSnapshot[State]) (*SessionSnapshot[State], error) {
		next, err := fn(was)
		if next != nil && next.SessionID == "" {
			next.SessionID = "none"
		}
		return next, err
	})
	if saved != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.snapshots[saved.SnapshotID] = saved
	}
	return saved, err
}
