package listing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestResolveExternalID names contexts by external ids.
func TestResolveExternalID(t *testing.T) {
	s, _ := kit.NewStore(t)
	l := listing.New(s)
	ctx := context.Background()
	made := map[string]uuid.UUID{}
	for _, m := range []engine.Metadata{
		{ExternalID: "one"}, {Kind: "memory", ExternalID: "two"}, {Kind: "state", ExternalID: "one"}, {Kind: "a", ExternalID: "b/c"},
		{Kind: "a", ExternalID: "twice"}, {Kind: "b", ExternalID: "twice"}, {ExternalID: "x/y"}, {Kind: "x", ExternalID: "y"},
		{ID: uuid.MustParse("00000000-0000-4000-8000-00000000cafe")}, {ExternalID: "cafe"}, {Kind: "k", ExternalID: "beef"},
	} {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, m))
		kit.Check(t, c.Close())
		made[m.Kind+" "+m.ExternalID] = c.ID()
	}
	for ref, want := range map[string]string{
		"one": " one", "state/one": "state one", "two": "memory two", "memory/two": "memory two", "a/b/c": "a b/c", "b/c": "a b/c",
		"b/twice": "b twice", "00cafe": " ", "cafe": " cafe", "beef": "k beef", made["memory two"].String(): "memory two",
	} {
		if id, err := l.Resolve(ref); err != nil || id != made[want] {
			t.Errorf("%q: %s, %v; want %s", ref, id, err, made[want])
		}
	}
	for ref, want := range map[string]int{"twice": 2, "x/y": 2} {
		var ambiguous *engine.Error
		if _, err := l.Resolve(ref); !errors.As(err, &ambiguous) || len(ambiguous.Matches) != want {
			t.Errorf("%q: %v", ref, err)
		}
	}
	for _, ref := range []string{"three", "memory/one", "memory/", "/two", "MEMORY/two", "Two", "fade"} {
		if id, err := l.Resolve(ref); !errors.Is(err, engine.ErrNotExist) || errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%q: %s, %v", ref, id, err)
		}
	}
	if id, err := l.Resolve(""); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("an empty text: %s, %v", id, err)
	}
}
