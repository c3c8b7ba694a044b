package storetest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestWriteToArchived: another process archives a message that a handle has read, and a third process appends meanwhile. The
// handle can still replace the message, and does not append it a second time.
func TestWriteToArchived(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithSealBytes(-1))
	for i := range 3 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(i + 1), Body: fmt.Appendf(nil, `{"n":%d}`, i+1)})
	}
	kit.Check(t, c.Seal(ctx))
	others := kit.Must[*engine.Store](t)(kit.Open(c.Store.Path(), engine.WithSealBytes(-1)))
	defer others.Close()
	theirs := kit.Must[*engine.Context](t)(others.Context(ctx, c.ID()))
	defer theirs.Close()
	ours := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer ours.Close()
	kit.Load(t, ours.Active())
	var once sync.Once
	var err error
	kit.Must[archiving.Result](t)(kit.Archive(ctx, theirs, archiving.Options{Progress: func(int64, int64) {
		once.Do(func() { _, err = c.Active().Append(ctx, engine.Draft{ID: kit.TestID(9), Body: []byte(`{"n":9}`)}) })
	}}))
	kit.Check(t, err)
	at, err := ours.Active().Append(ctx, engine.Draft{ID: kit.TestID(1), Body: []byte(`{"n":1}`)})
	if err != nil || !at.Existed || at.Position != 0 {
		t.Errorf("appended again: %+v, %v", at, err)
	}
	kit.Check(t, ours.Active().Replace(ctx, kit.TestID(2), engine.Draft{Body: []byte(`{"n":22}`)}))
	kit.Check(t, theirs.Refresh(ctx))
	for i, want := range []string{`{"n":1}`, `{"n":22}`, `{"n":3}`, `{"n":9}`} {
		m := kit.Must[[]*engine.Message](t)(theirs.Active().Range(ctx, int64(i), int64(i+1)))
		if got := kit.BodyOf(m[0]); got != want {
			t.Errorf("position %d: %s", i, got)
		}
	}
}
