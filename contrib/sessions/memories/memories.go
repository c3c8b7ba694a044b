// Package memories finds what earlier sessions of a user said: long-term memory for adapters of frameworks, over the
// sessions that package sessions keeps. It copies nothing: a session that is added to memory is marked, and the search
// index of the store finds its events. Removing or erasing a session removes it from memory.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package memories

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/contrib/sessions"
	"github.com/ctxdir/ctxdir/search"
)

// label marks a session that is in memory.
const label = "memory"

// DefaultMaxTokens bounds what one search returns, in tokens.
const DefaultMaxTokens = 2000

// Service is the memory of a framework's sessions in a store. Several goroutines and processes may use it.
type Service struct {
	store     *ctxdir.Store
	tool      string
	MaxTokens int // of one search; 0 for [DefaultMaxTokens]
}

// New returns the memory of a framework; tool is its name, as for [sessions.New].
func New(store *ctxdir.Store, tool string) *Service {
	search.Attach(store) // so that an erase reaches the index
	return &Service{store: store, tool: tool}
}

// Memory is a part of what an event said.
type Memory struct {
	Body json.RawMessage // the event, as the framework has it
	Text string          // the passages of it that matter
	Time time.Time
}

// Add puts a session into memory, with the events that it has and those that follow. It fails with [ctxdir.ErrNotExist]
// if the store has no such session.
func (s *Service) Add(ctx context.Context, k sessions.Key) error {
	return s.store.Use(ctx, sessions.ContextID(s.tool, k), func(c *ctxdir.Context) error {
		if c.Metadata().Labels[label] != "" {
			return nil
		}
		return c.Update(ctx, func(m *ctxdir.Metadata) error {
			m.Labels[label] = "true"
			return nil
		})
	})
}

// Search returns what a user's sessions in memory say about a query, in the order in which they said it, within the
// budget of tokens.
func (s *Service) Search(ctx context.Context, app, user, query string) (all []Memory, err error) {
	most := s.MaxTokens
	if most == 0 {
		most = DefaultMaxTokens
	}
	a, err := assemble.Build(ctx, s.store, assemble.Request{
		Query: query, MaxTokens: most, Labels: map[string]string{"tool": s.tool, "app": app, "user": user, label: "true"},
	})
	if err != nil {
		return nil, err
	}
	for i := range a.Items {
		it := &a.Items[i]
		err := s.store.Use(ctx, it.Context, func(c *ctxdir.Context) error {
			b, err := c.Branch(it.Branch)
			if err != nil {
				return err
			}
			m, err := b.Message(ctx, it.ID)
			if err != nil {
				return err
			}
			body, err := m.Body(ctx)
			if err == nil {
				all = append(all, Memory{body, it.Text, it.At})
			}
			return err
		})
		if err != nil && !errors.Is(err, ctxdir.ErrNotExist) && !errors.Is(err, ctxdir.ErrErased) { // it went meanwhile
			return nil, err
		}
	}
	return all, nil
}
