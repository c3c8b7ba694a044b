package serve

import (
	"os"
	"testing"
	"time"
)

// TestMain lets the test program be a server.
func TestMain(m *testing.M) {
	if Started() {
		return
	}
	os.Exit(m.Run())
}

// TestServe is a short run of what cmd/serve does for long.
func TestServe(t *testing.T) {
	o := Options{Dir: t.TempDir(), Rounds: 15, Clients: 4, Longest: 300 * time.Millisecond, Seed: uint64(time.Now().UnixNano()), Logf: t.Logf}
	t.Logf("seed %d", o.Seed)
	got, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
	if got.Messages == 0 || got.Repeated == 0 {
		t.Errorf("%+v: nothing was tested", got)
	}
}
