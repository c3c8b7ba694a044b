package trash

import (
	"testing"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestForgetOwnLines: a purge does not forget a line that another purge has marked meanwhile: its files may be there.
func TestForgetOwnLines(t *testing.T) {
	ctx := t.Context()
	s, err := engine.Init("disk", engine.WithFS(crashfs.New()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, engine.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lines := map[string]uuid.UUID{}
	for _, name := range []string{"own", "other"} {
		b, err := c.Active().Fork(ctx, name, 0)
		if err == nil {
			_, err = b.Append(ctx, engine.Draft{Body: []byte(`{}`)})
		}
		if err != nil {
			t.Fatal(err)
		}
		x, _ := c.Metadata().Branch(name)
		lines[name] = x.Line
		if err := c.Remove(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	mark := func(name string) {
		t.Helper()
		if err := c.Change(ctx, func(m *engine.Metadata) error { branch.Purge(m, lines[name]); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		_, ok := c.Metadata().Line(lines[name])
		return ok
	}
	mark("own")
	mark("other")
	if err := forgetLines(ctx, c, map[uuid.UUID]bool{lines["own"]: true}); err != nil || !there("own") || !there("other") {
		t.Errorf("own %v, other %v, %v: a line of another purge was forgotten", there("own"), there("other"), err)
	}
	if err := forgetLines(ctx, c, map[uuid.UUID]bool{lines["own"]: true, lines["other"]: true}); err != nil || there("own") || there("other") {
		t.Errorf("own %v, other %v, %v: not forgotten", there("own"), there("other"), err)
	}
}
