package storetest

import (
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/migrate"
)

// Open opens a store as the public API does: a legacy context in it is migrated when it is opened.
func Open(dir string, opts ...engine.Option) (*engine.Store, error) {
	return engine.Open(dir, withLegacy(opts)...)
}

// Init makes a store and opens it as Open does.
func Init(dir string, opts ...engine.Option) (*engine.Store, error) {
	return engine.Init(dir, withLegacy(opts)...)
}

func withLegacy(opts []engine.Option) []engine.Option {
	return append([]engine.Option{engine.OpenLegacy(migrate.Open)}, opts...)
}
