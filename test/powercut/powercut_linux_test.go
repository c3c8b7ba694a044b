package powercut

import (
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/writer"
)

// TestMain lets the test program be a writer (see writer.Started) or a disk (disk.Started), and mount where nobody else
// sees it.
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
				Dir:     t.TempDir(),
				Cuts:    len(waysFor(fs)),
				Life:    4,
				Writers: 3,
				Longest: 300 * time.Millisecond,
				Seed:    uint64(time.Now().UnixNano()),
				Logf:    t.Logf,
			}
			for _, tally := range cutAll(t, fs, o) {
				if tally.Rounds != 1 {
					t.Errorf("%s: %d cuts", tally.Way, tally.Rounds)
				}
			}
		})
	}
}

// TestRefusedWrites cuts the power of a disk that refuses some writes of logs, segments and blobs. Nobody is told of one twice, and
// nothing that was acknowledged behind it is lost.
func TestRefusedWrites(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			if why := Missing(fs); why != "" {
				t.Skip(why)
			}
			o := Options{
				Dir: t.TempDir(), Cuts: 4, Life: 4, Writers: 3, Longest: time.Second, Seed: uint64(time.Now().UnixNano()), Refuse: 0.1, Logf: t.Logf,
			}
			refused := 0
			for range 8 { // writers on a busy machine write little
				for _, tally := range cutAll(t, fs, o) {
					refused += tally.Refused
				}
				t.Logf("%d writes were refused", refused)
				if refused > 0 {
					return
				}
				o.Seed++
			}
			t.Error("no write was refused")
		})
	}
}

func cutAll(t *testing.T, fs string, o Options) []*Tally {
	t.Helper()
	t.Logf("seed %d", o.Seed)
	tallies, err := Run(t.Context(), fs, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tally := range tallies {
		if len(tally.Troubles) > 0 {
			t.Errorf("%s: problems: %v", tally.Way, tally.Troubles)
		}
	}
	return tallies
}
