package backup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestCurrent: a copy is made again after each kind of change to the context or to the copy, and only then.
func TestCurrent(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: "a title"}))
	kit.Fill(t, c.Active(), 5)
	first := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"text":"short"}`)}).ID
	to := kit.Must[*engine.Store](t)(kit.Init(filepath.Join(t.TempDir(), "backups")))
	path := func(root string, id uuid.UUID) string {
		return filepath.Join(root, c.ID().String(), "messages", "branch-main", id.String()+".json")
	}
	kit.Check(t, c.Seal(ctx))
	current := func(why string, want bool) {
		t.Helper()
		done := kit.Must[backup.Result](t)(backup.Copy(ctx, s, c.ID(), to))
		if done.Current != want || (done.Messages == 0) != want || done.Missing != 0 {
			t.Errorf("%s: %+v", why, done)
		}
	}
	current("no copy", false)
	for _, change := range []struct {
		name string
		do   func() error
	}{
		{"append", func() error { kit.Fill(t, c.Active(), 1); return nil }},
		{"replace", func() error { return c.Active().Replace(ctx, first, engine.Draft{Body: []byte(`{"text":"other"}`)}) }},
		{"title", func() error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "another"; return nil })
		}},
		{"edit of a message", func() error {
			raw := string(kit.Must[[]byte](t)(os.ReadFile(path(dir, first))))
			kit.Write(t, path(dir, first), []byte(strings.Replace(raw, "other", "edited by hand", 1)))
			return c.Refresh(ctx)
		}},
		{"fork", func() error { _, err := c.Active().Fork(ctx, "alt", 2); return err }},
		{"rewind", func() error { return c.Active().Rewind(ctx, 6) }},
		{"a segment of the copy is missing", func() error {
			return os.RemoveAll(filepath.Join(to.Path(), c.ID().String(), "segments"))
		}},
		{"edit of a message of the copy", func() error {
			raw := string(kit.Must[[]byte](t)(os.ReadFile(path(to.Path(), first))))
			return os.WriteFile(path(to.Path(), first), []byte(strings.Replace(raw, "edited", "edited again", 1)), 0o600)
		}},
		{"the copy was written to", func() error {
			copied := kit.Must[*engine.Context](t)(to.Context(ctx, c.ID()))
			kit.Fill(t, copied.Active(), 1)
			return copied.Close()
		}},
		{"the copy is gone", func() error { _, err := to.Delete(ctx, c.ID()); return err }},
	} {
		current("before "+change.name, true)
		kit.Check(t, change.do())
		current(change.name, false)
	}
	current("after all", true)
	kit.Check(t, c.Seal(ctx))
	current("after a seal", true)
	kit.Check(t, c.Close(), s.Close(), to.Close())
}
