package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
)

// TestErasedBytes: a size does not count what was erased, wherever that was, nor does an index that is made anew say anything else.
func TestErasedBytes(t *testing.T) {
	ctx := context.Background()
	for name, x := range map[string]func(c *Context) error{
		"in a journal": func(*Context) error { return nil },
		"folded":       func(c *Context) error { return c.Fold(ctx) },
		"archived": func(c *Context) error {
			_, err := c.Archive(ctx, ArchiveOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := newContext(t, WithFoldBytes(-1))
			fill(t, c.Active(), 10)
			check(t, x(c))
			all := must[[]*Message](t)(c.Active().Load(ctx))
			bytesOf := func() int64 {
				t.Helper()
				again := must[*Context](t)(c.store.Context(ctx, c.ID()))
				defer again.Close()
				counts, _, err := again.log.Counts(again.current().Lines[0].ID)
				check(t, err)
				return counts.Bytes
			}
			before := bytesOf()
			for n := range 2 { // the second time there is nothing to erase
				for _, err := range c.store.Erase(ctx, c.ID(), []uuid.UUID{all[3].ID, all[9].ID}, EraseOptions{}) {
					check(t, err)
				}
				after := bytesOf()
				if n == 0 && after >= before-100 || n == 1 && after != before {
					t.Errorf("%d bytes, %d before", after, before)
				}
				check(t, c.Refresh(ctx))
				if counts, _, err := c.log.Counts(c.current().Lines[0].ID); err != nil || counts.Bytes != after {
					t.Errorf("an open handle tells %d bytes, another one %d, %v", counts.Bytes, after, err)
				}
				must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"after":1}`)}))
				check(t, c.Fold(ctx))
				with := bytesOf()
				check(t, os.Remove(filepath.Join(dir, "index.json")))
				if rebuilt := bytesOf(); rebuilt != with || with <= after {
					t.Errorf("%d bytes, with one more %d, rebuilt %d", after, with, rebuilt)
				}
				before = with
			}
		})
	}
}
