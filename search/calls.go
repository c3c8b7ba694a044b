package search

import (
	"math"

	"github.com/ctxdir/ctxdir/outline"
)

// packCalls makes numbers of calls a blob, nil for none: a byte for each kind.
func packCalls(calls *outline.Calls) []byte {
	if *calls == (outline.Calls{}) {
		return nil
	}
	b := make([]byte, len(calls))
	for i, n := range calls {
		b[i] = byte(min(n, math.MaxUint8))
	}
	return b
}

func unpackCalls(b []byte) (calls outline.Calls) {
	for i := range min(len(b), len(calls)) {
		calls[i] = int64(b[i])
	}
	return calls
}
