package storetest

import (
	"context"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// Append appends a message and returns where it is.
func Append(t *testing.T, b *engine.Branch, d engine.Draft) engine.AppendResult {
	t.Helper()
	return Must[engine.AppendResult](t)(b.Append(context.Background(), d))
}

// Load returns all messages of a branch.
func Load(t *testing.T, b *engine.Branch) []*engine.Message {
	t.Helper()
	return Must[[]*engine.Message](t)(b.Load(context.Background()))
}

// Manual returns the options of a store that folds and pauses only when a test says so. Texts of at least threshold
// bytes become payloads.
func Manual(threshold int64, more ...engine.Option) []engine.Option {
	return append([]engine.Option{engine.WithFoldBytes(-1), engine.WithTextThreshold(threshold), engine.WithoutPause()}, more...)
}
