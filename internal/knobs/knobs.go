// Package knobs has what tests and benchmarks need of a store, and nobody else.
package knobs

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/bridge"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Options makes options of the engine those of the public API.
func Options(more ...engine.Option) ctxdir.Options { return bridge.Options(more...).(ctxdir.Options) }

// SealBytes sets the length of a log, in bytes, at which another one begins, so that the first is sealed. With a negative
// length nothing is sealed unless a call says so.
func SealBytes(bytes int64) ctxdir.Options { return Options(engine.WithSealBytes(bytes)) }

// FilesOnReturn makes an append return only when its message files exist.
func FilesOnReturn() ctxdir.Options { return Options(engine.WithFiles(engine.FilesOnReturn)) }

// Seal makes segments of all that the logs of a context have, now. The engine does so by itself when a log has grown
// enough.
func Seal(ctx context.Context, c *ctxdir.Context) error {
	return bridge.Error(bridge.Context(c).Seal(ctx))
}
