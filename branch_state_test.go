package ctxdir_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// stateOf returns the state of a branch as a context that is opened now shows it.
func stateOf(t *testing.T, s *ctxdir.Store, id uuid.UUID, branch string) string {
	t.Helper()
	c := must(s.Open(context.Background(), id))
	defer c.Close()
	b := c.Metadata().Branch(branch)
	if b == nil {
		t.Fatalf("no branch %q", branch)
	}
	return string(b.State)
}

func setState(branch, state string) func(m *ctxdir.Metadata) error {
	return func(m *ctxdir.Metadata) error {
		m.Branch(branch).State = json.RawMessage(state)
		return nil
	}
}

// TestBranchState: a fork begins with the state of its parent, and neither changes the other. The state needs no
// particular form, and null is a value.
func TestBranchState(t *testing.T) {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	check(c.Update(ctx, setState("main", `{ "topic": null, "step": 1 }`)))
	must(c.Active().Fork(ctx, "alt", 0))
	check(c.Update(ctx, setState("alt", `{"topic":null,"step":2}`)))
	copied := must(must(c.Branch("alt")).Copy(ctx, 0, ctxdir.Metadata{}))
	defer copied.Close()
	for _, want := range []struct {
		id            uuid.UUID
		branch, state string
	}{
		{c.ID(), "main", `{"topic":null,"step":1}`},
		{c.ID(), "alt", `{"topic":null,"step":2}`},
		{copied.ID(), "main", `{"topic":null,"step":2}`},
	} {
		if got := stateOf(t, s, want.id, want.branch); got != want.state {
			t.Errorf("the state of %q is %s, not %s", want.branch, got, want.state)
		}
	}
	if err := c.Update(ctx, setState("main", `{`)); !errors.Is(err, ctxdir.ErrInvalid) {
		t.Errorf("a state that is not JSON: %v", err)
	}
	check(c.Update(ctx, setState("main", ``)))
	if got := stateOf(t, s, c.ID(), "main"); got != "" {
		t.Errorf("a removed state is %s", got)
	}
}

// TestCommitPosition: a commit at a position fails when the branch has grown, and a retry with the same id succeeds.
func TestCommitPosition(t *testing.T) {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	n := must(c.Active().Len(ctx))
	draft := ctxdir.Draft{ID: uuid.New(), Body: said("user", "Which way?")}
	appends := func(d ctxdir.Draft) func(tx *ctxdir.Tx) error {
		return func(tx *ctxdir.Tx) error { return tx.Append("main", d) }
	}
	must(c.Commit(ctx, appends(draft), ctxdir.WriteOptions{Position: &n}))
	again := must(c.Commit(ctx, appends(draft), ctxdir.WriteOptions{Position: &n}))
	if at := again.Appended[0]; !at.Existed || at.Position != n {
		t.Errorf("the retry returned %+v", at)
	}
	_, err := c.Commit(ctx, appends(ctxdir.Draft{Body: said("user", "And then?")}), ctxdir.WriteOptions{Position: &n})
	if !errors.Is(err, ctxdir.ErrPosition) {
		t.Errorf("a stale commit: %v", err)
	}
	if now := must(c.Active().Len(ctx)); now != n+1 {
		t.Errorf("the branch has %d messages, not %d", now, n+1)
	}
}
