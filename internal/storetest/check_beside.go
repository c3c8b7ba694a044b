package storetest

import (
	"context"
	"iter"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// NothingFound fails for what a check of a whole store finds.
func NothingFound(t *testing.T, when string, s *engine.Store, o engine.CheckOptions) {
	t.Helper()
	for f, err := range s.Check(context.Background(), nil, o) {
		t.Errorf("%s: %+v, %v", when, f, err)
	}
}

func Finish[T any](t *testing.T, all iter.Seq2[T, error]) {
	t.Helper()
	for _, err := range all {
		Check(t, err)
	}
}
