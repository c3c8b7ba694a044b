package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestContextsInOrder: what goes through the whole store does so in the order of ids, whatever the file system's is.
func TestContextsInOrder(t *testing.T) {
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	defer s.Close()
	for range 30 {
		c := kit.Must[*engine.Context](t)(s.Create(context.Background(), engine.Metadata{ID: uuid.New()}))
		kit.Check(t, c.Close())
	}
	var ids, checked []string
	for id, err := range s.IDs() {
		kit.Check(t, err)
		ids = append(ids, id.String())
	}
	report := func(p checking.Progress) { checked = append(checked, p.Context.String()) }
	for f, err := range checking.Check(context.Background(), s, nil, checking.Options{Progress: report}) {
		t.Error(f, err)
	}
	if len(ids) != 30 || !slices.IsSorted(ids) {
		t.Errorf("%d ids: %v", len(ids), ids)
	}
	if checked = slices.Compact(checked); len(checked) != 30 || !slices.IsSorted(checked) {
		t.Errorf("%d contexts checked: %v", len(checked), checked)
	}
}
