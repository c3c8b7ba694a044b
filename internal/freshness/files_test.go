package freshness_test

import (
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/freshness"
)

// TestResolution: a time with a fraction of a millisecond is of a fine clock.
func TestResolution(t *testing.T) {
	for at, want := range map[int64]time.Duration{
		0: 2 * time.Second, 1795416967_000000000: 2 * time.Second, 1795416967_120000000: 2 * time.Second,
		1795416967_123456789: 100 * time.Millisecond, 1795416967_000000001: 100 * time.Millisecond, -1: 100 * time.Millisecond,
	} {
		if got := freshness.ResolutionOf(at); got != want {
			t.Errorf("%d: %v, wanted %v", at, got, want)
		}
	}
}
