package adk

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/contrib/sessions"
	"google.golang.org/adk/session"
)

// storedSession implements [session.Session].
type storedSession struct {
	data   *sessions.Session
	mu     sync.Mutex
	events []*session.Event
}

func storedSessionOf(s session.Session) (*storedSession, error) {
	stored, ok := s.(*storedSession)
	if !ok {
		return nil, fmt.Errorf("unexpected session type %T: the session belongs to another service", s)
	}
	return stored, nil
}

func (s *storedSession) ID() string                { return s.data.ID }
func (s *storedSession) AppName() string           { return s.data.App }
func (s *storedSession) UserID() string            { return s.data.User }
func (s *storedSession) LastUpdateTime() time.Time { return s.data.Updated() }
func (s *storedSession) State() session.State      { return state{s.data} }

func (s *storedSession) Events() session.Events {
	s.mu.Lock()
	defer s.mu.Unlock()
	return events(s.events[:len(s.events):len(s.events)])
}

func (s *storedSession) add(e *session.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// events implements [session.Events].
type events []*session.Event

func (e events) All() iter.Seq[*session.Event] { return slices.Values(e) }
func (e events) Len() int                      { return len(e) }

func (e events) At(i int) *session.Event {
	if i < 0 || i >= len(e) {
		return nil
	}
	return e[i]
}

// state implements [session.State].
type state struct{ data *sessions.Session }

func (s state) Get(key string) (any, error) {
	values, err := s.data.State(context.Background())
	if err != nil {
		return nil, err
	}
	value, ok := values[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return value, nil
}

func (s state) Set(key string, value any) error { return s.data.Set(context.Background(), key, value) }

// All yields nothing if the state of a listed session cannot be read; Get returns the error.
func (s state) All() iter.Seq2[string, any] {
	values, _ := s.data.State(context.Background())
	return func(yield func(string, any) bool) {
		for key, value := range values {
			if !yield(key, value) {
				return
			}
		}
	}
}
