package session_test

import (
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
)

// newSwap returns the adapter on a store in a new folder.
func newSwap[S any]() *genkit.Store[S] {
	dir, err := os.MkdirTemp("", "swap")
	if err != nil {
		panic(err)
	}
	store, err := ctxdir.Init(filepath.Join(dir, "store"))
	if err != nil {
		panic(err)
	}
	return genkit.NewStore[S](store)
}
