// Package knobs has what tests and benchmarks need of a store, and nobody else.
package knobs

import (
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Options makes options of the engine those of the public API.
func Options(more ...engine.Option) ctxdir.Options { return ctxdir.Options{Internal: more} }

// SealBytes sets the length of a log, in bytes, at which another one begins, so that the first is sealed. With a negative
// length nothing is sealed unless a call says so.
func SealBytes(bytes int64) ctxdir.Options { return Options(engine.WithSealBytes(bytes)) }

// FilesOnReturn makes an append return only when its message files exist.
func FilesOnReturn() ctxdir.Options { return Options(engine.WithFiles(engine.FilesOnReturn)) }
