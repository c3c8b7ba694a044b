package sessions_test

import (
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/sessions"
)

// TestCreateOnBranch: a session that is created on a branch has this branch, and continues there.
func TestCreateOnBranch(t *testing.T) {
	store, k := newStore(t), sessions.Key{App: "app", User: "ada", ID: "s1"}
	s := sessions.New(store, "tool")
	alt := s.OnBranch("alt")
	sess, err := alt.Create(t.Context(), k, map[string]any{"x": "y"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.Append(t.Context(), sessions.Event{ID: "e1", Role: "user", Body: []byte(`{}`)}, map[string]any{"z": 1}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*sessions.Service{"on the branch": alt, "on the active one": s} {
		events := 0
		got, err := s.Get(t.Context(), k, sessions.Selection{}, func(_ sessions.Event, err error) error {
			events++
			return err
		})
		if err != nil || events != 1 {
			t.Fatalf("%s: %d events, %v", name, events, err)
		}
		if state, err := got.State(t.Context()); err != nil || state["x"] != "y" || state["z"] != 1.0 {
			t.Errorf("%s: %v, %v", name, state, err)
		}
	}
	if _, err := alt.Create(t.Context(), k, nil); !errors.Is(err, ctxdir.ErrExist) {
		t.Errorf("a second creation: %v", err)
	}
	if err := alt.Delete(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(t.Context(), k, sessions.Selection{}, func(sessions.Event, error) error { return nil })
	if !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("after the only branch is deleted: %v", err)
	}

	// What cannot be the name of a branch leaves no session.
	if _, err := s.OnBranch("a\x00b").Create(t.Context(), k, nil); err == nil {
		t.Error("a session on a branch with a zero byte in its name")
	}
	if listed, err := s.List(t.Context(), "app", ""); err != nil || len(listed) != 0 {
		t.Errorf("%d sessions, %v", len(listed), err)
	}
}
