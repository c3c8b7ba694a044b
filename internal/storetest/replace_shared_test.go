package storetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestReplaceShared: what counts is which branches show a message, not which lines began on its own.
func TestReplaceShared(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	main := c.Active()
	for n := range 5 {
		kit.Append(t, main, engine.Draft{ID: kit.TestID(n), Body: []byte(`{}`)})
	}
	replace := func(when string, b *engine.Branch, n int, want error) {
		t.Helper()
		if err := b.Replace(ctx, kit.TestID(n), engine.Draft{Body: []byte(`{"when":"` + when + `"}`)}); !errors.Is(err, want) {
			t.Errorf("%s: message %d: %v, want %v", when, n, err, want)
		}
	}
	kit.Check(t, main.Rewind(ctx, 4))
	replace("rewound", main, 0, nil)
	alt := kit.Must[*engine.Branch](t)(main.Fork(ctx, "alt", 2))
	replace("forked", main, 1, engine.ErrShared)
	replace("forked", alt, 1, engine.ErrShared)
	replace("forked", main, 2, nil)
	kit.Check(t, c.Remove(ctx, "alt"))
	replace("removed", main, 1, nil)
}
