package genkit

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/firebase/genkit/go/core/x/session"
)

var _ session.Store[any] = (*Store[any])(nil)

// Kind is the kind of the contexts that hold sessions. The external id is that of the session.
const Kind = "genkit-session"

// Store keeps sessions with a state of type S in a store. Several processes may use it.
type Store[S any] struct {
	store *ctxdir.Store
}

// NewStore returns a store that keeps its sessions in store. The caller closes store.
func NewStore[S any](store *ctxdir.Store) *Store[S] { return &Store[S]{store} }

// Get returns the newest state of a session, or nil if there is none.
func (s *Store[S]) Get(ctx context.Context, id string) (*session.Data[S], error) {
	var data *session.Data[S]
	err := s.store.Use(ctx, ctxdir.ContextID(Kind, id), func(c *ctxdir.Context) error {
		last, err := c.Active().Last(ctx, 1)
		if err != nil || len(last) == 0 {
			return err
		}
		body, err := last[0].Body(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &data)
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Save stores a state of a session. Earlier states stay, as earlier messages.
func (s *Store[S]) Save(ctx context.Context, id string, data *session.Data[S]) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	m := ctxdir.Metadata{Kind: Kind, ExternalID: id, Labels: map[string]string{"tool": "genkit"}}
	return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		_, err := c.Active().Append(ctx, ctxdir.Draft{Type: "session", Body: body})
		return err
	})
}
