package sessions_test

import (
	"errors"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/sessions"
)

// The adapters test this package with the suites of their frameworks. What follows is what no framework sees.

func newStore(t *testing.T) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestNames: names with slashes, escapes or nothing in them stay apart, and come back from the list.
func TestNames(t *testing.T) {
	s := sessions.New(newStore(t), "tool")
	keys := []sessions.Key{{"a", "b/c", "d"}, {"a/b", "c", "d"}, {"a", "b", "c/d"}, {"a", "b%2Fc", "d"}, {"a", "ü ", "…"}}
	for _, k := range keys {
		if _, err := s.Create(t.Context(), k, map[string]any{"name": k.User}); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
	for _, k := range keys {
		listed, err := s.List(t.Context(), k.App, k.User)
		if err != nil || len(listed) != 1 || listed[0].Key != k {
			t.Fatalf("%+v: %v, %v", k, listed, err)
		}
		if state, err := listed[0].State(t.Context()); err != nil || state["name"] != k.User {
			t.Errorf("%+v: %v, %v", k, state, err)
		}
	}
}

// TestTools: two frameworks may use the same names in one store.
func TestTools(t *testing.T) {
	store, k := newStore(t), sessions.Key{App: "app", User: "ada", ID: "s1"}
	one, two := sessions.New(store, "one"), sessions.New(store, "two")
	if _, err := one.Create(t.Context(), k, map[string]any{"app:x": 1}); err != nil {
		t.Fatal(err)
	}
	if listed, err := two.List(t.Context(), "app", ""); err != nil || len(listed) != 0 {
		t.Errorf("the other framework lists %v, %v", listed, err)
	}
	made, err := two.Create(t.Context(), k, nil)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := made.State(t.Context()); err != nil || len(state) != 0 {
		t.Errorf("the other framework has the state %v, %v", state, err)
	}
	if _, err := one.Create(t.Context(), k, map[string]any{"app:x": 2}); !errors.Is(err, ctxdir.ErrExist) {
		t.Errorf("a second creation: %v", err)
	}
	again, err := one.Get(t.Context(), k, sessions.Selection{}, func(sessions.Event, error) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if state, err := again.State(t.Context()); err != nil || state["app:x"] != 1.0 {
		t.Errorf("the refused creation changed the state to %v, %v", state, err)
	}
}

// TestBranchOfFork: a fork that another program made has the state of its parent.
func TestBranchOfFork(t *testing.T) {
	store, k := newStore(t), sessions.Key{App: "app", User: "ada", ID: "s1"}
	s := sessions.New(store, "tool")
	sess, err := s.Create(t.Context(), k, map[string]any{"x": "y"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.Append(t.Context(), sessions.Event{ID: "e1", Body: []byte(`{}`)}, nil); err != nil {
		t.Fatal(err)
	}
	err = store.Use(t.Context(), sessions.ContextID("tool", k), func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(t.Context(), "alt", 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	alt, err := s.OnBranch("alt").Get(t.Context(), k, sessions.Selection{}, func(sessions.Event, error) error {
		t.Error("the fork has an event")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := alt.State(t.Context()); err != nil || state["x"] != "y" {
		t.Errorf("the state of the fork is %v, %v", state, err)
	}
}
