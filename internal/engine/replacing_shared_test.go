package engine

import (
	"context"
	"errors"
	"testing"
)

// TestReplaceShared: what counts is which branches show a message, not which lines began on its own.
func TestReplaceShared(t *testing.T) {
	ctx := context.Background()
	s, _ := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	defer c.Close()
	main := c.Active()
	for n := range 5 {
		must[Appended](t)(main.Append(ctx, Draft{ID: testID(n), Body: []byte(`{}`)}))
	}
	replace := func(when string, b *Branch, n int, want error) {
		t.Helper()
		if err := b.Replace(ctx, testID(n), Draft{Body: []byte(`{"when":"` + when + `"}`)}); !errors.Is(err, want) {
			t.Errorf("%s: message %d: %v, want %v", when, n, err, want)
		}
	}
	check(t, main.Rewind(ctx, 4))
	replace("rewound", main, 0, nil)
	alt := must[*Branch](t)(main.Fork(ctx, "alt", 2))
	replace("forked", main, 1, ErrShared)
	replace("forked", alt, 1, ErrShared)
	replace("forked", main, 2, nil)
	check(t, c.Remove(ctx, "alt"))
	replace("removed", main, 1, nil)
}
