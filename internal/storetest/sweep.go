package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
)

func Sweep(t *testing.T, s *engine.Store, grace time.Duration, dryRun bool) (moved []engine.TrashItem) {
	t.Helper()
	for x, err := range trash.Sweep(context.Background(), s, grace, dryRun) {
		if err != nil {
			t.Fatal(err)
		}
		moved = append(moved, x)
	}
	return moved
}

func LargeBody(letter string) string {
	return `{"role":"tool","content":"` + strings.Repeat(letter+"payload ", 20_000) + `"}`
}
