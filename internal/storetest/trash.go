package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// Collect collects, and returns what was moved to trash and what was purged.
func Collect(t *testing.T, s *engine.Store, o trash.CollectOptions) (moved, purged []engine.TrashItem) {
	t.Helper()
	for x, err := range trash.Collect(context.Background(), s, o) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Purged {
			purged = append(purged, x.TrashItem)
		} else {
			moved = append(moved, x.TrashItem)
		}
	}
	return moved, purged
}

// TrashOf returns the items of a kind in all trash of a store, or with "" all items.
func TrashOf(t *testing.T, s *engine.Store, kind string) (found []engine.TrashItem) {
	t.Helper()
	for x, err := range trash.List(context.Background(), s) {
		if err != nil {
			t.Fatal(err)
		}
		if kind == "" || x.Kind == kind {
			found = append(found, x)
		}
	}
	return found
}

// NewOrphan makes a context with a removed branch "gone" of five messages of its own, forked at 1, beside main, and
// collects.
func NewOrphan(t *testing.T, s *engine.Store) (c *engine.Context, want []string) {
	t.Helper()
	ctx := context.Background()
	c = Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	Fill(t, c.Active(), 3)
	gone := Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
	Fill(t, gone, 5)
	want = Bodies(t, gone)
	Check(t, c.Remove(ctx, "gone"))
	return c, want
}

// CollectAll collects in the whole store, and returns every error.
func CollectAll(s *engine.Store, grace time.Duration) error {
	var failed []error
	for _, err := range trash.Collect(context.Background(), s, trash.CollectOptions{Grace: grace}) {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// FindItem returns the item with the end of the line that had this branch name.
func FindItem(s *engine.Store, name string) (engine.TrashItem, error) {
	for t, err := range trash.List(context.Background(), s) {
		if err != nil || t.Kind == "line" && t.Name == name {
			return t, err
		}
	}
	return engine.TrashItem{}, fmt.Errorf("nothing of %q is in trash", name)
}
