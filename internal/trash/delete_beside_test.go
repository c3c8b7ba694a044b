package trash_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestRemoveBesideCollect: while something is moved to the trash, a collection of another process without a grace
// period goes on before any one of its operations there. What was to be removed is, and nothing fails.
func TestRemoveBesideCollect(t *testing.T) {
	ctx := context.Background()
	for what, remove := range map[string]func(s *engine.Store, c *engine.Context) error{
		"context": func(s *engine.Store, c *engine.Context) error {
			_, err := s.Delete(ctx, c.ID())
			return err
		},
		"file":  func(_ *engine.Store, c *engine.Context) error { return c.Dir.SetAside("messages/stray") },
		"blobs": func(s *engine.Store, _ *engine.Context) error { return s.SetAside("blobs") },
	} {
		for k := 1; ; k++ {
			disk := crashfs.New()
			s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			kit.Check(t, vfs.WriteNew(c.Dir.FS, "messages/stray", nil), c.Dir.FS.Mkdir("trash"))
			if err := vfs.RemoveAll(s.FS, "blobs"); err != nil {
				t.Fatal(err)
			}
			kit.Check(t, vfs.WriteNew(s.FS, "blobs", nil))
			others := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
			n, collecting := 0, false
			disk.Fail(func(o crashfs.Op) error {
				if collecting || o.Index == 0 || !strings.Contains(o.Path+o.To, "trash/") {
					return nil
				}
				if n++; n == k {
					collecting = true
					for _, err := range trash.Purge(ctx, others, nil, 0, false) {
						kit.Check(t, err)
					}
					collecting = false
				}
				return nil
			})
			err := remove(s, c)
			disk.Fail(nil)
			if err != nil {
				t.Errorf("%s, collected before operation %d: %v", what, k, err)
			}
			if n < k {
				if k < 4 {
					t.Errorf("%s: %d operations", what, k-1)
				}
				break
			}
		}
	}
}

// TestPurgedUnderAHandle: who still has a context open that was removed and purged is told that it is gone.
func TestPurgedUnderAHandle(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t)
	kit.Fill(t, c.Active(), 3)
	kit.Check(t, c.Seal(ctx))
	kit.Must[engine.TrashItem](t)(c.Store.Delete(ctx, c.ID()))
	for _, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{}) {
		kit.Check(t, err)
	}
	if err := c.Refresh(ctx); !errors.Is(err, engine.ErrGone) {
		t.Errorf("refresh: %v", err)
	}
}
