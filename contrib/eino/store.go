package eino

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
)

// Kind is the kind of the contexts that hold checkpoints. The external id is that of the checkpoint.
const Kind = "eino-checkpoint"

// Store keeps checkpoints in a store. Several processes may use it.
type Store struct {
	store *ctxdir.Store
}

// NewStore returns a store that keeps its checkpoints in store. The caller closes store.
func NewStore(store *ctxdir.Store) *Store { return &Store{store} }

// checkpoint is the body of a message. Checkpoints of eino's own serializer are texts.
type checkpoint struct {
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"` // if it is not a text
}

// Get returns the newest checkpoint with an id, if there is one.
func (s *Store) Get(ctx context.Context, id string) (data []byte, found bool, err error) {
	err = s.store.Use(ctx, ctxdir.ContextID(Kind, id), func(c *ctxdir.Context) error {
		last, err := c.Active().Last(ctx, 1)
		if err != nil || len(last) == 0 {
			return err
		}
		body, err := last[0].Body(ctx)
		if err != nil {
			return err
		}
		var was checkpoint
		if err := json.Unmarshal(body, &was); err != nil {
			return err
		}
		data, found = append([]byte(was.Text), was.Data...), true
		return nil
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil, false, nil
	}
	return data, found, err
}

// Set stores a checkpoint. Earlier ones with the id stay, as earlier messages.
func (s *Store) Set(ctx context.Context, id string, data []byte) error {
	body, err := json.Marshal(checkpoint{Text: string(data)})
	if !utf8.Valid(data) {
		body, err = json.Marshal(checkpoint{Data: data})
	}
	if err != nil {
		return err
	}
	m := ctxdir.Metadata{Kind: Kind, ExternalID: id, Labels: map[string]string{"tool": "eino"}}
	return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		_, err := c.Active().Append(ctx, ctxdir.Draft{Type: "checkpoint", Body: body})
		return err
	})
}

// Delete moves the checkpoints with an id to the trash of the store.
func (s *Store) Delete(ctx context.Context, id string) error {
	if _, err := s.store.Remove(ctx, ctxdir.ContextID(Kind, id)); !errors.Is(err, ctxdir.ErrNotExist) {
		return err
	}
	return nil
}
