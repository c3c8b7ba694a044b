package trash_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"
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

// TestPurgedFolderStays: if the folder of a purged branch, which bears its name, cannot be removed, the purge says so, and
// the next one removes it.
func TestPurgedFolderStays(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 3)
	kit.Fill(t, kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 2)), 2)
	kit.Check(t, c.Remove(ctx, "alt"), c.Close())
	const folder = "messages/branch-alt"
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.HasSuffix(o.Path, folder) {
			return syscall.EIO
		}
		return nil
	})
	if err := kit.CollectAll(s, 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("the purge says %v", err)
	}
	disk.Fail(nil)
	kit.Check(t, kit.CollectAll(s, 0))
	if _, err := disk.Lstat(c.ID().String() + "/" + folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	kit.Check(t, s.Close())
}
