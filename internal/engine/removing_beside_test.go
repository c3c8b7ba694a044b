package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestRemoveBesideCollect: while something is moved to the trash, a collection of another process without a grace
// period goes on before any one of its operations there. What was to be removed is, and nothing fails.
func TestRemoveBesideCollect(t *testing.T) {
	ctx := context.Background()
	for what, remove := range map[string]func(s *Store, c *Context) error{
		"context": func(s *Store, c *Context) error {
			_, err := s.Delete(ctx, c.ID())
			return err
		},
		"file":  func(_ *Store, c *Context) error { return c.dir.SetAside("messages/stray") },
		"blobs": func(s *Store, _ *Context) error { return s.setAside("blobs") },
	} {
		for k := 1; ; k++ {
			disk := crashfs.New()
			s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
			c := must[*Context](t)(s.Create(ctx, Metadata{}))
			check(t, vfs.WriteNew(c.dir.FS, "messages/stray", nil), c.dir.FS.Mkdir("trash"))
			if err := vfs.RemoveAll(s.fs, "blobs"); err != nil {
				t.Fatal(err)
			}
			check(t, vfs.WriteNew(s.fs, "blobs", nil))
			others := must[*Store](t)(Open("disk", withFS(disk), WithFoldBytes(-1)))
			n, collecting := 0, false
			disk.Fail(func(o crashfs.Op) error {
				if collecting || o.Index == 0 || !strings.Contains(o.Path+o.To, "trash/") {
					return nil
				}
				if n++; n == k {
					collecting = true
					for _, err := range others.Purge(ctx, nil, 0, false) {
						check(t, err)
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

// TestPurgedUnderAHandle: who still reads a context that was removed and purged is told that it is gone.
func TestPurgedUnderAHandle(t *testing.T) {
	ctx := context.Background()
	c, _ := newContext(t)
	fill(t, c.Active(), 3)
	check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
	must[Trashed](t)(c.store.Delete(ctx, c.ID()))
	for _, err := range c.store.Collect(ctx, Collecting{}) {
		check(t, err)
	}
	if err := c.Refresh(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("refresh: %v", err)
	}
	if _, err := c.Active().Load(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("load: %v", err)
	}
}
