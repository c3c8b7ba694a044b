package storetest_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// archiveTogether archives contexts in one call.
func archiveTogether(t *testing.T, s *engine.Store, ids ...uuid.UUID) (done []engine.ArchiveResult) {
	t.Helper()
	for x, err := range s.Archive(context.Background(), ids, engine.ArchiveOptions{}) {
		kit.Check(t, err)
		done = append(done, x)
	}
	return done
}

// TestArchiveCosts: archiving one context opens nothing of the others, however many there are; archiving all opens each
// message with payloads of every context no more than twice, once to find out what they share.
func TestArchiveCosts(t *testing.T) {
	ctx := context.Background()
	opened := map[string][]int{}
	for _, others := range []int{2, 12} {
		k := newCounted(t, engine.WithTextThreshold(1<<10))
		var ids []uuid.UUID
		for i := range others + 1 {
			c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
			kit.Fill(t, c.Active(), 20)
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody(c.ID().String()))})
			kit.Check(t, c.Fold(ctx), c.Close())
			ids = append(ids, c.ID())
		}
		one := func(calls []crashfs.Op, inside string) (n int) {
			for _, o := range calls {
				if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, inside) {
					n++
				}
			}
			return n
		}
		calls := k.during(func() {
			c := kit.Must[*engine.Context](t)(k.store.Context(ctx, ids[0]))
			kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
			kit.Check(t, c.Close())
		})
		opened["one"] = append(opened["one"], one(calls, ""))
		for _, id := range ids[1:] {
			if n := one(calls, id.String()); n > 0 {
				t.Errorf("archiving another context opens %d files of %s", n, id)
			}
		}
		calls = k.during(func() {
			if done := archiveTogether(t, k.store); len(done) != others+1 {
				t.Errorf("%d contexts", len(done))
			}
		})
		opened["all"] = append(opened["all"], one(calls, "")/others) // one has nothing left to archive
		files := map[string]int{}
		for _, o := range calls {
			if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, "/messages/") && path.Ext(o.Path) == ".json" {
				files[o.Path]++
			}
		}
		for file, n := range files {
			if n > 3 { // by the settle, for the pack, and before the journal goes
				t.Errorf("%s is opened %d times", file, n)
			}
		}
	}
	for what, n := range opened {
		if n[1] > n[0]+n[0]/4 {
			t.Errorf("%s: %d opens with 2 other contexts, %d with 12", what, n[0], n[1])
		}
	}
}

// TestArchiveShared: of contexts that are archived in one call, a payload that several refer to stays a blob, once; the
// others go into packs. A context that is archived alone takes copies of all its payloads, and the blob stays as long
// as another context needs it.
func TestArchiveShared(t *testing.T) {
	ctx := context.Background()
	for _, together := range []bool{true, false} {
		s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10), engine.WithFoldBytes(-1))
		want := map[uuid.UUID][]string{}
		var ids []uuid.UUID
		for i := range 3 {
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
			bodies := []string{kit.LargeBody("own" + c.ID().String()), kit.LargeBody("shared")}
			if i == 2 {
				bodies = bodies[:1]
			}
			for _, body := range bodies {
				kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
			}
			kit.Check(t, c.Close())
			ids = append(ids, c.ID())
			want[c.ID()] = bodies
		}
		shows := func(when string) {
			t.Helper()
			for id, want := range want {
				c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
				if got := kit.ResolvedBodies(t, c.Active()); !slices.Equal(got, want) {
					t.Errorf("together %v, %s: context %s changed", together, when, id)
				}
				kit.Check(t, c.Close())
			}
		}
		blobs := func() int {
			kit.Collect(t, s, trash.CollectOptions{Grace: 0})
			kit.Collect(t, s, trash.CollectOptions{Grace: 0})
			return len(kit.BlobFiles(t, dir))
		}
		if together {
			archiveTogether(t, s)
			if n := blobs(); n != 1 {
				t.Errorf("together: %d blobs, wanted the one that two contexts share", n)
			}
			shows("archived")
			clean(t, s)
			continue
		}
		for i, left := range []int{3, 2, 0} { // with the first one its own blob goes, with the second the shared one too
			archiveTogether(t, s, ids[[]int{0, 2, 1}[i]])
			if n := blobs(); n != left {
				t.Errorf("alone: %d blobs are left after %d contexts, wanted %d", n, i+1, left)
			}
			shows("archived")
		}
		clean(t, s)
	}
}
