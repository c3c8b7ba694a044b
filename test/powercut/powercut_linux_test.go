package powercut

import (
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/writer"
)

// TestMain lets the test program be a writer (see writer.Started) or a disk (disk.Started), and mount where nobody else sees it.
func TestMain(m *testing.M) {
	if writer.Started() || disk.Started() {
		return
	}
	os.Exit(InPrivate(m.Run))
}

// TestPowerCut is a short run of what cmd/powercut does for long: each way of cutting once.
func TestPowerCut(t *testing.T) {
	for _, fs := range disk.FileSystems() {
		t.Run(fs, func(t *testing.T) {
			if why := Missing(fs); why != "" {
				t.Skip(why)
			}
			o := Options{
				Dir: t.TempDir(), Cuts: len(waysFor(fs)), Life: 4, Writers: 3, Longest: 300 * time.Millisecond, Seed: uint64(time.Now().UnixNano()), Logf: t.Logf,
			}
			t.Logf("seed %d", o.Seed)
			tallies, err := Run(t.Context(), fs, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, tally := range tallies {
				if tally.Rounds != 1 || len(tally.Troubles) > 0 {
					t.Errorf("%s: %d cuts, problems: %v", tally.Way, tally.Rounds, tally.Troubles)
				}
			}
		})
	}
}
