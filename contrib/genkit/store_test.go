package genkit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"github.com/firebase/genkit/go/core/x/session"
)

type state struct {
	Step int    `json:"step"`
	Text string `json:"text,omitempty"`
}

const each = 20 // states of each process

// child is what the processes of the tests do.
func child(store *ctxdir.Store, _ int) error {
	ctx, s := context.Background(), genkit.NewStore[state](store)
	sess, err := session.Load(ctx, s, "shared")
	for i := 1; err == nil && i <= each; i++ {
		err = sess.UpdateState(ctx, state{Step: i})
	}
	return err
}

func TestMain(m *testing.M) { adaptertest.Main(m, child) }

func create(t *testing.T, s *genkit.Store[state], id string) *session.Session[state] {
	t.Helper()
	sess, err := session.New(t.Context(), session.WithID[state](id), session.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

func update(t *testing.T, sess *session.Session[state], next state) {
	t.Helper()
	if err := sess.UpdateState(t.Context(), next); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, s *genkit.Store[state], id string, want state) {
	t.Helper()
	sess, err := session.Load(t.Context(), s, id)
	if err != nil {
		t.Fatal(err)
	}
	if got := sess.State(); got != want || sess.ID() != id {
		t.Errorf("session %q in step %d with %d bytes", sess.ID(), got.Step, len(got.Text))
	}
}

// TestRestart: another store on the folder has the newest state, also a large one.
func TestRestart(t *testing.T) {
	store := adaptertest.Open(t, "")
	sess := create(t, genkit.NewStore[state](store), "a/b")
	large := state{1, strings.Repeat("large <&>", 1<<20)}
	update(t, sess, state{})
	update(t, sess, large)
	s := genkit.NewStore[state](adaptertest.Open(t, store.Info().Path))
	expect(t, s, "a/b", large)
	var missing *session.NotFoundError
	if _, err := session.Load(t.Context(), s, "none"); !errors.As(err, &missing) {
		t.Errorf("a session that does not exist: %v", err)
	}
}

// TestProcesses: two processes save states of one session at once. None is lost, and the newest is the last of one.
func TestProcesses(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	create(t, s, "shared")
	adaptertest.Processes(t, store, 2)
	expect(t, s, "shared", state{Step: each})
	err := store.Use(t.Context(), ctxdir.ContextID(genkit.Kind, "shared"), func(c *ctxdir.Context) error {
		if n, err := c.Active().Len(t.Context()); n != 2*each+1 || err != nil {
			t.Errorf("%d states, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFork: a session continues from an earlier state on another branch, and the later states stay where they were.
func TestFork(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	sess := create(t, s, "x")
	for i := range 3 {
		update(t, sess, state{Step: i})
	}
	to := func(branch string, fork bool) {
		err := store.Use(t.Context(), ctxdir.ContextID(genkit.Kind, "x"), func(c *ctxdir.Context) (err error) {
			if fork {
				_, err = c.Active().Fork(t.Context(), branch, 3)
			}
			return errors.Join(err, c.Switch(t.Context(), branch))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	to("retry", true)
	expect(t, s, "x", state{Step: 1})
	update(t, sess, state{Step: 7})
	expect(t, s, "x", state{Step: 7})
	to("main", false)
	expect(t, s, "x", state{Step: 2})
}

// TestRemove: a session that another handle removed is gone, and begins anew.
func TestRemove(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	update(t, create(t, s, "x"), state{Step: 1})
	other := adaptertest.Open(t, store.Info().Path)
	if _, err := other.Remove(t.Context(), ctxdir.ContextID(genkit.Kind, "x")); err != nil {
		t.Fatal(err)
	}
	if data, err := s.Get(t.Context(), "x"); data != nil || err != nil {
		t.Errorf("a removed session: %v, %v", data, err)
	}
	create(t, s, "x")
	expect(t, genkit.NewStore[state](other), "x", state{})
}
