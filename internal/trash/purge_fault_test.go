package trash_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestPurgeUnread lets each look at the disk fail once while something is purged, or what an interrupted purge left is.
// What cannot be looked at may be there: a purge that reports success leaves no file with the canary, and one that
// reports a failure leaves none when it is repeated.
func TestPurgeUnread(t *testing.T) {
	stride := kit.Stride()
	if testing.Short() {
		stride *= 4 // there are many removals
	}
	purges := map[string]func(s *engine.Store) error{
		"trash empty": purgeAll,
		"gc":          func(s *engine.Store) error { return kit.CollectAll(s, 0) },
	}
	for name, purge := range purges {
		for state := range purgeStates {
			for removal := range removals {
				t.Run(name+"/"+state+"/"+removal, func(t *testing.T) {
					t.Parallel()
					disk := crashfs.New()
					kit.Check(t, newPurgeStore(t, disk, state, removal, 3000).Close())
					before := len(disk.Ops())
					whole := disk.Clone()
					s := kit.Must[*engine.Store](t)(kit.OpenCrash(whole))
					kit.Check(t, purge(s), s.Close())
					for _, died := range []int{0, 1 + rand.IntN(len(whole.Ops())-before)} {
						for k := 1 + rand.IntN(stride); ; k += stride {
							again := disk.Clone()
							if died > 0 {
								again.CutAt(before + died)
								if s, err := kit.OpenCrash(again); err == nil {
									_ = purge(s)
									_ = s.Close()
								}
								again = again.Crash(crashfs.Keep)
							}
							s := kit.Must[*engine.Store](t)(kit.OpenCrash(again))
							failed := kit.FailLook(again, k)
							first := purge(s)
							again.Fail(nil)
							if *failed == "" {
								kit.Check(t, first, s.Close())
								break
							}
							err := first
							if err != nil {
								err = purge(s)
							}
							found, ferr := kit.FilesWithCanary(again)
							if err = errors.Join(err, ferr); err != nil || len(found) > 0 {
								t.Errorf("stopped at change %d, look %d failed (%s), %v: the canary is in %v, %v", died, k, *failed, first, found, err)
							}
							kit.Check(t, s.Close())
						}
					}
				})
			}
		}
	}
}
