package trash_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// spread makes a context with a branch whose name, state and messages hold the canary. Its messages, of which some have
// payloads and older versions, are in several segments and the log, among those of main.
func spread(t *testing.T, disk *crashfs.FS, segments int) (*engine.Store, *engine.Context) {
	t.Helper()
	ctx := t.Context()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.WithTextThreshold(1<<10))...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Fill(t, c.Active(), 1)
	gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "b-"+kit.Canary, 1))
	kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error {
		m.Branches[1].Extra.Set(ctxfolder.BranchState, fmt.Appendf(nil, "%q", kit.Canary))
		return nil
	}))
	for i := range segments + 1 { // the last ones are in the log
		kit.Fill(t, c.Active(), 1)
		for j, size := range []int{10, 3000, 70_000} {
			kit.Append(t, gone, engine.Draft{ID: kit.TestID(10*i + j + 1), Body: kit.Secret(size)})
		}
		if i > 0 {
			kit.Check(t, gone.Replace(ctx, kit.TestID(10*(i-1)+1), engine.Draft{Body: kit.Secret(20)}))
		}
		if i < segments {
			kit.Check(t, c.Seal(ctx))
		}
	}
	return s, c
}

// viewsOf returns the files of messages that hold the canary.
func viewsOf(t *testing.T, disk *crashfs.FS, c *engine.Context) map[string][]byte {
	t.Helper()
	views := map[string][]byte{}
	for _, file := range kit.Must[[]string](t)(kit.FilesWithCanary(disk)) {
		if name, ok := strings.CutPrefix(file, c.ID().String()+"/"+ctxfolder.Messages+"/"); ok {
			views[ctxfolder.Messages+"/"+name] = kit.Must[[]byte](t)(vfs.ReadFile(c.Dir.FS, ctxfolder.Messages+"/"+name, 1<<30))
		}
	}
	return views
}

func putBack(t *testing.T, c *engine.Context, views map[string][]byte) {
	t.Helper()
	for name, content := range views {
		_ = c.Dir.FS.Mkdir(path.Dir(name))
		_ = c.Dir.FS.Remove(name)
		kit.Check(t, vfs.WriteNew(c.Dir.FS, name, content))
	}
}

// TestPurgeSpread purges a branch whose messages are in several segments and the log. Whether they have files or not, or
// these came back, nothing holds the canary afterwards, in contents and in names.
func TestPurgeSpread(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	states := map[string]func(disk *crashfs.FS, c *engine.Context){
		"with files": func(*crashfs.FS, *engine.Context) {},
		"archived": func(_ *crashfs.FS, c *engine.Context) {
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		},
		"files came back": func(disk *crashfs.FS, c *engine.Context) {
			views := viewsOf(t, disk, c)
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			putBack(t, c, views)
		},
		"torn files": func(disk *crashfs.FS, c *engine.Context) {
			views := viewsOf(t, disk, c)
			for name, content := range views {
				views[name] = content[:len(content)-2]
			}
			putBack(t, c, views)
		},
	}
	purges := map[string]func(s *engine.Store) error{
		"trash empty": purgeAll,
		"gc":          func(s *engine.Store) error { return kit.CollectAll(s, 0) },
	}
	for state, change := range states {
		for name, purge := range purges {
			for _, segments := range []int{0, 1, 3, 9} { // nine are merged
				disk := crashfs.New()
				s, c := spread(t, disk, segments)
				kit.Check(t, c.Flush(ctx))
				views := viewsOf(t, disk, c)
				change(disk, c)
				if len(views) == 0 {
					t.Fatalf("%s, %s, %d segments: no file has the canary", state, name, segments)
				}
				kept := kit.Bodies(t, c.Active())
				kit.Check(t, c.Remove(ctx, "b-"+kit.Canary), purge(s))
				nothing := func(when string) {
					t.Helper()
					found := kit.Must[[]string](t)(kit.FilesWithCanary(disk))
					if dump := disk.Dump(); len(found) > 0 || strings.Contains(dump, kit.Canary) {
						t.Fatalf("%s, %s, %d segments, %s: the canary is in %v\n%s", state, name, segments, when, found, dump)
					}
				}
				nothing("after the purge")
				kit.Append(t, c.Active(), engine.Draft{ID: uuid.New(), Body: []byte(`{"more":1}`)})
				kit.Check(t, c.Seal(ctx), c.Refresh(ctx))
				nothing("after another seal")
				if got := kit.Bodies(t, c.Active()); !slices.Equal(got[:len(kept)], kept) {
					t.Errorf("%s, %s, %d segments: main shows %v, wanted %v", state, name, segments, got, kept)
				}
				kit.NothingFound(t, state+", "+name, s, checking.Options{ReadData: true})
				// Files that come back now are no messages.
				putBack(t, c, views)
				kit.Check(t, kit.CollectAll(s, 0), c.Seal(ctx), c.Refresh(ctx))
				for _, b := range c.Metadata().Branches {
					if found := strings.Join(kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch(b.Name))), " "); strings.Contains(found, kit.Canary) {
						t.Errorf("%s, %s, %d segments: branch %s shows what was purged", state, name, segments, b.Name)
					}
				}
				found := kit.Must[[]string](t)(kit.FilesWithCanary(disk))
				if want := slices.Sorted(maps.Keys(views)); len(found) != len(want) {
					t.Errorf("%s, %s, %d segments: the canary is in %v, and not in %v alone", state, name, segments, found, want)
				}
				kit.Check(t, c.Close(), s.Close())
			}
		}
	}
}

// TestPurgeOldViews purges the version of a message that was replaced, whose file has that version still, or a part of it:
// its writer was killed, or a power cut undid the replacement. The file has the newer version then.
func TestPurgeOldViews(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, purge := range map[string]func(s *engine.Store) error{
		"trash empty": purgeAll,
		"gc":          func(s *engine.Store) error { return kit.CollectAll(s, 0) },
	} {
		for _, sealed := range []bool{false, true} {
			for _, torn := range []bool{false, true} {
				disk := crashfs.New()
				s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
				c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
				kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: kit.Secret(10)})
				kit.Check(t, c.Flush(ctx))
				views := viewsOf(t, disk, c)
				if sealed {
					kit.Check(t, c.Seal(ctx))
				}
				kit.Check(t, c.Active().Replace(ctx, kit.TestID(1), engine.Draft{Body: []byte(`{"n":2}`)}), c.Flush(ctx))
				for name, content := range views {
					if torn {
						views[name] = content[:len(content)-2]
					}
				}
				putBack(t, c, views)
				kit.Check(t, c.Close(), purge(s))
				if found := kit.Must[[]string](t)(kit.FilesWithCanary(disk)); len(views) != 1 || len(found) > 0 {
					t.Errorf("%s, sealed %v, torn %v: the canary is in %v", name, sealed, torn, found)
				}
				c = kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000)))
				if m := kit.Load(t, c.Active())[0]; kit.BodyOf(m) != `{"n":2}` || m.Edited {
					t.Errorf("%s, sealed %v, torn %v: the message is %s, edited %v", name, sealed, torn, kit.BodyOf(m), m.Edited)
				}
				kit.NothingFound(t, name, s, checking.Options{ReadData: true})
				kit.Check(t, c.Close(), s.Close())
			}
		}
	}
}

// TestPurgeSpreadCut cuts the power at every operation of such a purge. The next collection finishes it.
func TestPurgeSpreadCut(t *testing.T) {
	t.Parallel()
	states := 0
	for k := 1; ; k += kit.Stride() {
		disk := crashfs.New()
		s, c := spread(t, disk, 3)
		kit.Check(t, c.Flush(t.Context()))
		kept := kit.Bodies(t, c.Active())
		kit.Check(t, c.Remove(t.Context(), "b-"+kit.Canary), c.Close(), s.FS.SyncAll())
		disk.CutAt(len(disk.Ops()) + k)
		err := purgeAll(s)
		over := !disk.PowerCut()
		if over {
			kit.Check(t, err)
		}
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
			states++
			left := disk.Crash(choice)
			s := kit.Must[*engine.Store](t)(kit.OpenCrash(left))
			if !over {
				kit.Check(t, kit.CollectAll(s, 0))
			}
			for _, d := range []*crashfs.FS{left, left.Crash(crashfs.Lose)} {
				found := kit.Must[[]string](t)(kit.FilesWithCanary(d))
				if dump := d.Dump(); len(found) > 0 || strings.Contains(dump, kit.Canary) {
					t.Fatalf("cut at %d (%s), disk %s: the canary is in %v\n%s", k, kit.LastOp(disk), choice, found, dump)
				}
			}
			c := kit.Must[*engine.Context](t)(s.Context(t.Context(), kit.TestID(60000)))
			if got := kit.Bodies(t, c.Active()); !slices.Equal(got, kept) {
				t.Fatalf("cut at %d (%s), disk %s: main shows %v, wanted %v", k, kit.LastOp(disk), choice, got, kept)
			}
			kit.Check(t, c.Close(), s.Close())
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}
