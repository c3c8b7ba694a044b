//go:build !cgo

package engine

// mattnEngine needs a C compiler.
var mattnEngine *Engine
