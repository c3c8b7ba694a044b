package migrate

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// From is Migrate for a legacy context in any folder.
func From(ctx context.Context, s *engine.Store, from vfs.FS, name, path string) (Result, error) {
	return (&migration{s: s, from: from, name: name, path: path}).run(ctx)
}
