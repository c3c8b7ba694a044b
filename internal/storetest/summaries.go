package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

func List(t *testing.T, s *engine.Store) []engine.Summary {
	t.Helper()
	var all []engine.Summary
	for sum, err := range s.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(a, b engine.Summary) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return all
}
