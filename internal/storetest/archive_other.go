package storetest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// ResolvedBodies returns the bodies of a branch, payloads put back.
func ResolvedBodies(t *testing.T, b *engine.Branch) (all []string) {
	t.Helper()
	ctx := context.Background()
	for _, body := range Must[[]json.RawMessage](t)(engine.ResolveAll(ctx, Load(t, b))) {
		all = append(all, string(body))
	}
	return all
}
