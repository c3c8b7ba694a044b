// Package knobs has options of a store that tests and benchmarks need, and nobody else.
package knobs

import (
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Option makes an option of the engine one of the public API.
func Option(o engine.Option) ctxdir.Option {
	return func(all *[]engine.Option) { *all = append(*all, o) }
}

// SealBytes sets the length of a log, in bytes, at which another one begins, so that the first is sealed. With a negative
// length nothing is sealed unless a call says so.
func SealBytes(bytes int64) ctxdir.Option { return Option(engine.WithSealBytes(bytes)) }

// FilesOnReturn makes an append return only when its message files exist.
func FilesOnReturn() ctxdir.Option { return Option(engine.WithFiles(engine.FilesOnReturn)) }
