package ctxdir

import (
	"github.com/ctxdir/ctxdir/internal/bridge"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Package search reads messages by their lines, and more of an index than callers of this package need.
func init() {
	bridge.Engine = func(store any) *engine.Store { return store.(*Store).e }
	bridge.Context = func(c any) *engine.Context { return c.(*Context).e }
}
