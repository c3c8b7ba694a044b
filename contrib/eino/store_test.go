package eino_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/eino"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
)

var (
	_ compose.CheckPointStore = (*eino.Store)(nil)
	_ adk.CheckPointStore     = (*eino.Store)(nil)
	_ adk.CheckPointDeleter   = (*eino.Store)(nil)
)

const each = 20 // checkpoints of each process

// child is what the processes of the tests do.
func child(store *ctxdir.Store, number int) error {
	for i := range each {
		if err := eino.NewStore(store).Set(context.Background(), "shared", fmt.Appendf(nil, "%d.%d", number, i)); err != nil {
			return err
		}
	}
	return nil
}

func TestMain(m *testing.M) { adaptertest.Main(m, child) }

func set(t *testing.T, s *eino.Store, id string, data []byte) {
	t.Helper()
	if err := s.Set(t.Context(), id, data); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, s *eino.Store, id string, want []byte) {
	t.Helper()
	got, found, err := s.Get(t.Context(), id)
	if err != nil || found != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("checkpoint %q: %.40q, %t, %v; want %.40q", id, got, found, err, want)
	}
}

// TestRestart: checkpoints come back byte for byte from another store on the folder, texts, binary ones, large ones, and
// empty ones.
func TestRestart(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := eino.NewStore(store)
	all := map[string][]byte{
		"text": []byte(`{"a": "<b>&"}`), "binary": {0, 0xff, '"'}, "empty": {}, "a/b": []byte(" "), "ü": []byte("\u2028\x00"),
		"large": bytes.Repeat([]byte("large "), 1<<20), "large binary": bytes.Repeat([]byte{0xff, 0}, 1<<20),
	}
	for id, data := range all {
		set(t, s, id, []byte("old"))
		set(t, s, id, data)
	}
	s = eino.NewStore(adaptertest.Open(t, store.Info().Path))
	for id, data := range all {
		expect(t, s, id, data)
	}
	expect(t, s, "none", nil)
	if err := s.Set(t.Context(), "", nil); !errors.Is(err, ctxdir.ErrInvalid) {
		t.Errorf("without an id: %v", err)
	}
}

// TestProcesses: of the checkpoints that two processes store at once under one id, none is lost, and the last one of
// them is the newest.
func TestProcesses(t *testing.T) {
	store := adaptertest.Open(t, "")
	adaptertest.Processes(t, store, 2)
	data, _, err := eino.NewStore(store).Get(t.Context(), "shared")
	if last := fmt.Sprint(".", each-1); err != nil || !bytes.HasSuffix(data, []byte(last)) {
		t.Errorf("the newest checkpoint is %q, %v", data, err)
	}
	err = store.Use(t.Context(), ctxdir.ContextID(eino.Kind, "shared"), func(c *ctxdir.Context) error {
		if n, err := c.Active().Len(t.Context()); n != 2*each || err != nil {
			t.Errorf("%d checkpoints, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDelete: a checkpoint that another handle deleted is gone; one set anew has no earlier ones.
func TestDelete(t *testing.T) {
	store := adaptertest.Open(t, "")
	s, other := eino.NewStore(store), eino.NewStore(adaptertest.Open(t, store.Info().Path))
	set(t, s, "x", []byte("old"))
	if err := errors.Join(other.Delete(t.Context(), "x"), other.Delete(t.Context(), "x")); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "x", nil)
	set(t, s, "x", []byte("new"))
	expect(t, other, "x", []byte("new"))
}

// TestFork: an agent continues from an earlier checkpoint on another branch, and the later ones stay where they were.
func TestFork(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := eino.NewStore(store)
	for _, text := range []string{"one", "two", "three"} {
		set(t, s, "x", []byte(text))
	}
	err := store.Use(t.Context(), ctxdir.ContextID(eino.Kind, "x"), func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(t.Context(), "retry", 2)
		return errors.Join(err, c.Switch(t.Context(), "retry"))
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, s, "x", []byte("two"))
	set(t, s, "x", []byte("other"))
	expect(t, s, "x", []byte("other"))
	err = store.Use(t.Context(), ctxdir.ContextID(eino.Kind, "x"), func(c *ctxdir.Context) error {
		return c.Switch(t.Context(), "main")
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, s, "x", []byte("three"))
}
