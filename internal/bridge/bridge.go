// Package bridge lets packages of this module reach the engine below a store of the public API.
package bridge

import "github.com/ctxdir/ctxdir/internal/engine"

// Engine returns the engine of a store, a *ctxdir.Store. The root package sets it.
var Engine func(store any) *engine.Store
