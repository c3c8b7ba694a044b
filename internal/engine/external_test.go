package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestExternalID creates contexts with external ids: equal ids of different kinds are different contexts, and the id of
// a context follows from both, in every store.
func TestExternalID(t *testing.T) {
	s, _ := kit.NewStore(t)
	ctx := context.Background()
	open := func(kind, external string) uuid.UUID {
		t.Helper()
		c := kit.Must[*engine.Context](t)(s.OpenOrCreate(ctx, engine.Metadata{Kind: kind, ExternalID: external, Title: "first"}))
		defer c.Close()
		if m := c.Metadata(); m.Kind != kind || m.ExternalID != external || m.Title != "first" {
			t.Errorf("%+v", m)
		}
		return c.ID()
	}
	plain, memory := open("", "session 1"), open("memory", "session 1")
	if want := uuid.MustParse("312b6fbb-3680-5ece-8456-d5c0f561739d"); plain == memory || plain != open("", "session 1") || plain != want {
		t.Errorf("ids %s and %s, want %s first", plain, memory, want)
	}
	again := kit.Must[*engine.Context](t)(s.OpenOrCreate(ctx, engine.Metadata{ExternalID: "session 1", Title: "second"}))
	if again.ID() != plain || again.Metadata().Title != "first" {
		t.Errorf("%s, title %q", again.ID(), again.Metadata().Title)
	}
	kit.Check(t, again.Update(ctx, func(m *engine.Metadata) error {
		m.Kind, m.ExternalID, m.Title = "other", "other", "third"
		return nil
	}))
	if m := again.Metadata(); m.Kind != "" || m.ExternalID != "session 1" || m.Title != "third" {
		t.Errorf("after an update: %+v", m)
	}
	kit.Check(t, again.Close())
	for name, m := range map[string]engine.Metadata{
		"no external id": {Kind: "x"},
		"another id":     {ID: kit.TestID(1), ExternalID: "x"},
		"the id of a kind": {
			ID: plain, Kind: "memory", ExternalID: "session 1",
		},
		"too long":        {ExternalID: strings.Repeat("x", 4<<10+1)},
		"not UTF-8":       {ExternalID: "\xff"},
		"every kind":      {Kind: "*", ExternalID: "x"},
		"kind with slash": {Kind: "a/b", ExternalID: "x"},
		"kind with NUL":   {Kind: "a\x00b", ExternalID: "x"},
		"long kind":       {Kind: strings.Repeat("x", 257), ExternalID: "x"},
	} {
		if c, err := s.OpenOrCreate(ctx, m); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if _, err := s.Create(ctx, engine.Metadata{ExternalID: "session 1"}); !errors.Is(err, engine.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
}

// TestOpenOrCreateBeside: handles of one folder that open an external id at once get one context.
func TestOpenOrCreateBeside(t *testing.T) {
	_, dir := kit.NewStore(t)
	ids := make([]uuid.UUID, 8)
	var group sync.WaitGroup
	for i := range ids {
		s := kit.Must[*engine.Store](t)(kit.Open(dir))
		defer s.Close()
		group.Go(func() {
			c, err := s.OpenOrCreate(context.Background(), engine.Metadata{ExternalID: "x", Title: "once"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = c.ID()
			if _, err := c.Active().Append(context.Background(), engine.Draft{Body: []byte(`{"n":1}`)}); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s := kit.Must[*engine.Store](t)(kit.Open(dir))
	defer s.Close()
	all := kit.List(t, s)
	if len(all) != 1 || all[0].Messages != int64(len(ids)) {
		t.Errorf("%+v", all)
	}
}
