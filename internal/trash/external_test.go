package trash_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestExternalIDInTrash: the external id of a removed context is free. A restore refuses to replace the context that
// took it, and succeeds once that one is removed.
func TestExternalIDInTrash(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	named := func(title string) {
		t.Helper()
		c := kit.Must[*engine.Context](t)(s.OpenOrCreate(ctx, engine.Metadata{ExternalID: "x", Title: title}))
		if got := c.Metadata().Title; got != title {
			t.Errorf("title %q, want %q", got, title)
		}
		kit.Check(t, c.Close())
	}
	named("old")
	id := kit.Must[uuid.UUID](t)(listing.New(s).Resolve("x"))
	item := kit.Must[engine.TrashItem](t)(s.Delete(ctx, id))
	if _, err := listing.New(s).Resolve("x"); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("in the trash: %v", err)
	}
	named("new")
	if _, err := trash.Restore(ctx, s, item.Item); !errors.Is(err, engine.ErrExist) {
		t.Errorf("restored over another context: %v", err)
	}
	named("new")
	kit.Must[engine.TrashItem](t)(s.Delete(ctx, id))
	kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, item.Item))
	named("old")
}
