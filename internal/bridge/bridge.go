// Package bridge lets packages of this module reach the engine below the public API. The root package sets its functions.
package bridge

import "github.com/ctxdir/ctxdir/internal/engine"

// Engine returns the engine of a store, a *ctxdir.Store.
var Engine func(store any) *engine.Store

// Context returns the engine of a context, a *ctxdir.Context.
var Context func(c any) *engine.Context

// Options returns options of the engine as a ctxdir.Options.
var Options func(more ...engine.Option) any

// Error makes an error of the engine a *ctxdir.Error; nil stays nil.
var Error func(err error) error
