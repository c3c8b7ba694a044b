package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/handles"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestDescriptorsStay: whatever goes on in a context, through one handle and another, what it opened is closed when it
// is of no more use, and not when the garbage collector finds it.
func TestDescriptorsStay(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithSealBytes(-1), engine.WithTextThreshold(100))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	other := kit.Must[*engine.Store](t)(kit.Open(dir))
	defer other.Close()
	theirs := kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
	defer theirs.Close()
	name, n := "main", 0
	read := func(c *engine.Context) {
		kit.Check(t, c.Refresh(ctx))
		for _, m := range kit.Load(t, c.Active()) {
			kit.Must[json.RawMessage](t)(m.Body(ctx))
		}
	}
	round := func() {
		for range 3 {
			n++
			kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d,"text":"%0200d"}`, n, n)})
			read(theirs)
			kit.Check(t, c.Seal(ctx))
		}
		to := fmt.Sprintf("branch-%d", n)
		kit.Check(t, c.Rename(ctx, name, to))
		name = to
		read(theirs)
		kit.Must[archiving.Result](t)(kit.Archive(ctx, theirs, archiving.Options{}))
		read(c)
		kit.Must[archiving.Result](t)(archiving.Unarchive(ctx, c, nil))
		read(theirs)
		kit.Must[*engine.Message](t)(c.Active().Message(ctx, kit.TestID(n)))
		for x, err := range kit.SweepAll(ctx, s, time.Hour) {
			t.Error(x, err)
		}
		for f, err := range checking.Check(ctx, other, nil, checking.Options{ReadData: true}) {
			t.Error(f, err)
		}
		third := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{}))
		kit.Append(t, third.Active(), engine.Draft{Body: fmt.Appendf(nil, `{"text":"%0200d"}`, n)})
		kit.Check(t, third.Close())
		kit.Must[engine.TrashItem](t)(s.Delete(ctx, third.ID()))
		for x, err := range trash.Collect(ctx, s, trash.CollectOptions{Grace: time.Hour}) {
			if err != nil {
				t.Error(x, err)
			}
		}
		c.Index.Close()
		read(c)
	}
	round()
	round()
	files := kit.Descriptors(t)
	for range 10 {
		round()
	}
	if now := kit.Descriptors(t); now > files {
		t.Errorf("%d descriptors, there were %d", now, files)
	}
}

// TestDescriptorsBounded: a handle that reads every branch of a context does not keep open the folder of each.
func TestDescriptorsBounded(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithSealBytes(-1))
	const branches = 5 * handles.MaxOpen
	for i := range branches {
		kit.Fill(t, kit.Must[*engine.Branch](t)(c.NewBranch(ctx, fmt.Sprintf("branch %d", i))), 1)
	}
	kit.Check(t, c.Seal(ctx))
	c = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer c.Close()
	before := kit.Descriptors(t)
	for i := range branches {
		for _, m := range kit.Must[[]*engine.Message](t)(kit.Must[*engine.Branch](t)(c.Branch(fmt.Sprintf("branch %d", i))).Last(ctx, 1)) {
			kit.Must[json.RawMessage](t)(m.Body(ctx))
		}
	}
	if opened := kit.Descriptors(t) - before; opened > 2*handles.MaxOpen+8 { // folders, two each, and what the context itself needs
		t.Errorf("%d descriptors more", opened)
	}
}
