package usage_test

import (
	"testing"

	"github.com/ctxdir/ctxdir"
)

func newStore(t *testing.T) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir(), ctxdir.WithRelaxedDurability())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
