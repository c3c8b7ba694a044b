package trash_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// unread makes a message of branch main unreadable, which is in the only segment of a context's folder.
func unread(t *testing.T, folder string, id uuid.UUID) {
	t.Helper()
	for _, segment := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(folder, "segments", "*.zst"))) {
		kit.Write(t, segment, nil)
	}
	kit.Write(t, filepath.Join(folder, "messages", "branch-main", id.String()+".json"), nil)
}

// TestCollectKeepsBlobs: a collection looks for references while it goes from context to context. It misses none that
// goes to the trash meanwhile, in the same pass, nor one of a context that is removed beside it; and it moves no blob
// when a message cannot be read.
func TestCollectKeepsBlobs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, hide := range map[string]struct {
		before func(t *testing.T, s *engine.Store, c *engine.Context)
		beside func(t *testing.T, s *engine.Store, c *engine.Context) // once something was collected
	}{
		"in a line": {},
		"an old version": {before: func(t *testing.T, _ *engine.Store, c *engine.Context) {
			kit.Check(t, c.Active().Replace(ctx, kit.TestID(1), engine.Draft{Body: []byte(`{"n":2}`)}), c.Seal(ctx))
		}},
		"collected in this pass": {before: func(t *testing.T, _ *engine.Store, c *engine.Context) {
			kit.Check(t, c.Active().Rewind(ctx, 0), c.Seal(ctx))
		}},
		"removed before": {before: func(t *testing.T, s *engine.Store, c *engine.Context) {
			kit.Must[engine.TrashItem](t)(s.Delete(ctx, c.ID()))
		}},
		"removed beside": {beside: func(t *testing.T, s *engine.Store, c *engine.Context) {
			kit.Must[engine.TrashItem](t)(s.Delete(ctx, c.ID()))
		}},
		"cannot be read": {before: func(t *testing.T, s *engine.Store, c *engine.Context) {
			kit.Check(t, c.Seal(ctx))
			unread(t, filepath.Join(s.Path(), c.ID().String()), kit.TestID(1))
		}},
	} {
		for round := range 4 { // contexts come in a random order
			s, dir := kit.NewStore(t, engine.WithSealBytes(-1))
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(1), Body: []byte(kit.LargeBody("a"))})
			other, _ := kit.NewOrphan(t, s) // something is collected
			kit.Check(t, other.Close())
			if hide.before != nil {
				hide.before(t, s, c)
			}
			if name == "in a line" {
				loose, _, err := s.Blobs.Put([]byte("loose"))
				kit.Check(t, err)
				defer func() {
					if _, _, err := s.Blobs.Open(loose); err == nil {
						t.Errorf("%s, %d: the blob that nothing refers to is there", name, round)
					}
				}()
			}
			age(t, dir)
			for x, err := range trash.Collect(ctx, s, trash.CollectOptions{Grace: trash.DefaultGrace}) {
				if err != nil && name != "cannot be read" {
					t.Errorf("%s, %d: %v", name, round, err)
				}
				if hide.beside != nil && x.Context == other.ID() {
					hide.beside(t, s, c)
				}
			}
			if n := len(kit.BlobFiles(t, dir)); n != 1 {
				t.Errorf("%s, %d: %d blobs, wanted the one that is referred to", name, round, n)
			}
			kit.Check(t, c.Close(), os.RemoveAll(dir))
		}
	}
}
