package ctxdir_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir"
)

// TestUseOrCreate: callers in two stores on one folder get the same context, which has the id that ContextID says; an
// error of the function is returned, and creates nothing; a removed context is created anew.
func TestUseOrCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	id := ctxdir.ContextID("notes", "ada")
	m := ctxdir.Metadata{Kind: "notes", ExternalID: "ada"}
	var stores []*ctxdir.Store
	for range 2 {
		s, err := ctxdir.Init(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	add := func(s *ctxdir.Store) {
		err := s.UseOrCreate(t.Context(), m, func(c *ctxdir.Context) error {
			if c.ID() != id {
				t.Errorf("context %s, want %s", c.ID(), id)
			}
			_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(`{"text":"hello"}`)})
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	messages := func() (n int64) {
		err := stores[0].Use(t.Context(), id, func(c *ctxdir.Context) (err error) {
			n, err = c.Active().Len(t.Context())
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	var group sync.WaitGroup
	for _, s := range stores {
		for range 4 {
			group.Go(func() { add(s) })
		}
	}
	group.Wait()
	if n := messages(); n != 8 {
		t.Errorf("%d messages, want 8", n)
	}
	if _, err := stores[1].Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	calls := 0
	err := stores[0].UseOrCreate(t.Context(), m, func(*ctxdir.Context) error {
		calls++
		return ctxdir.ErrNotExist // of something in the context
	})
	if !errors.Is(err, ctxdir.ErrNotExist) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if add(stores[1]); messages() != 1 {
		t.Errorf("%d messages in the new context, want 1", messages())
	}
	if err := stores[0].UseOrCreate(t.Context(), ctxdir.Metadata{}, nil); !errors.Is(err, ctxdir.ErrInvalid) {
		t.Errorf("without an external id: %v", err)
	}
}
