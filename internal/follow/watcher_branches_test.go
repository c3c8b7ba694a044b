package follow_test

import (
	"context"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEventsOfSharedMessages: an event about a message names every branch that shows it, through lines without a name
// and nested forks, and none that was rewound before it or goes on beside it.
func TestEventsOfSharedMessages(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	fork := func(from, name string, at int64) {
		t.Helper()
		b := kit.Must[*engine.Branch](t)(kit.Must[*engine.Branch](t)(c.Branch(from)).Fork(ctx, name, at))
		kit.Fill(t, b, 2)
	}
	kit.Fill(t, c.Active(), 4)
	fork("main", "a", 3)
	fork("a", "b", 4)
	fork("b", "c", 1)
	fork("a", "d", 3) // has the positions 3 and 4 of its own
	d := kit.Must[*engine.Branch](t)(c.Branch("d"))
	kit.Check(t, d.Rewind(ctx, 2), c.Switch(ctx, "b"), c.Remove(ctx, "main"))
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, kit.Must[uint64](t)(follow.Sequence(c))))
	defer w.Close()
	b := kit.Must[*engine.Branch](t)(c.Branch("b"))
	for position, want := range []string{"a b c d", "a b d", "a b", "a b", "b"} {
		id := kit.Must[[]*engine.Message](t)(b.Range(ctx, int64(position), int64(position)+1))[0].ID
		kit.Check(t, b.Replace(ctx, id, engine.Draft{Body: []byte(`{"new":true}`)}, engine.Shared()))
		_, e := events(t, w, 1)
		if branchNames(e) != want || e.Branches[0].Name != e.Branch {
			t.Errorf("message %d: branches %q, first %q; want %q", position, branchNames(e), e.Branch, want)
		}
	}
}
