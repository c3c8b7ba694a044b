package kill

import (
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/test/writer"
)

// TestMain lets the test program be a writer: see writer.Started.
func TestMain(m *testing.M) {
	if writer.Started() {
		return
	}
	os.Exit(m.Run())
}

// TestKill is a short run of what cmd/kill does for long.
func TestKill(t *testing.T) {
	o := Options{
		Dir: t.TempDir(), Rounds: 8, Life: 4, Writers: 4, Longest: 600 * time.Millisecond, Seed: uint64(time.Now().UnixNano()), Logf: t.Logf,
	}
	t.Logf("seed %d", o.Seed)
	tally, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(tally.Troubles) > 0 {
		t.Errorf("problems: %v", tally.Troubles)
	}
	if tally.Acknowledged == 0 {
		t.Error("nothing was acknowledged: nothing was tested")
	}
}
