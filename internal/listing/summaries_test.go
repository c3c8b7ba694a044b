package listing_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// old makes the folder and the files of a context look as if nothing had touched them for a while.
func old(t *testing.T, dir string, ids ...uuid.UUID) {
	t.Helper()
	touch(t, dir, time.Now().Add(-time.Hour), ids...)
}

func touch(t *testing.T, dir string, at time.Time, ids ...uuid.UUID) {
	t.Helper()
	for _, id := range ids {
		names, err := filepath.Glob(filepath.Join(dir, id.String(), "*.json*"))
		if err != nil || len(names) < 2 {
			t.Fatal(names, err)
		}
		for _, n := range append(names, filepath.Join(dir, id.String())) {
			if err := os.Chtimes(n, time.Time{}, at); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestListFromTheCache: a list shows the same with the cache as without, after any change, and reads nothing of
// contexts that did not change.
func TestListFromTheCache(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := kit.Must[*engine.Store](t)(kit.Init(dir))
	l := listing.New(s)
	var ids []uuid.UUID
	for i := range 3 {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: string(rune('a' + i))}))
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":1}`)})
		ids = append(ids, c.ID())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, listing.SummariesFile)
	touch(t, dir, time.Now().Add(time.Hour), ids...) // later than any list of a slow test
	kit.ListBy(t, l)
	if _, err := os.Stat(path); err == nil {
		t.Error("what changed a moment ago was kept: its time does not tell the next change")
	}
	old(t, dir, ids...)
	want := kit.ListBy(t, l)
	if forgotten := l.Forgotten(ids); len(forgotten) > 0 {
		t.Errorf("%v are not in the cache", forgotten)
	}
	for _, change := range []struct {
		name string
		do   func(c *engine.Context) error
	}{
		{"append", func(c *engine.Context) error {
			_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"n":2}`)})
			return err
		}},
		{"title", func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "new"; return nil })
		}},
		{"fork", func(c *engine.Context) error { _, err := c.Active().Fork(ctx, "f", 1); return err }},
		{"seal", func(c *engine.Context) error { return c.Seal(ctx) }},
		{"gone", func(c *engine.Context) error {
			return os.Remove(filepath.Join(dir, c.ID().String(), ctxfolder.MetadataFile))
		}},
	} {
		name := change.name
		c := kit.Must[*engine.Context](t)(s.Context(ctx, ids[1]))
		if err := change.do(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		got := kit.ListBy(t, l)
		if err := os.Remove(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bare := kit.ListBy(t, l)
		for i := range got {
			got[i].Problem, bare[i].Problem = nil, nil
		}
		if diff := cmp.Diff(bare, got); diff != "" {
			t.Errorf("%s: without the cache and with it: %s", name, diff)
		}
		if cmp.Equal(want[0], got[1]) || !cmp.Equal(want[0], got[0]) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestSpoiledCache: whatever lies in the cache's place, a list is right.
func TestSpoiledCache(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := kit.Must[*engine.Store](t)(kit.Init(dir))
	l := listing.New(s)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: "right"}))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	old(t, dir, c.ID())
	want := kit.ListBy(t, l)
	path := filepath.Join(dir, listing.SummariesFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := slices.Clone(good)
	wrong[slices.Index(wrong, '\n')+60] ^= 1
	for name, content := range map[string][]byte{
		"empty": nil, "zeros": make([]byte, 500), "cut": good[:len(good)-9], "flipped": wrong, "text": []byte("{}\n{}\n"),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, kit.ListBy(t, l)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kit.ListBy(t, l)); diff != "" {
		t.Errorf("a folder: %s", diff)
	}
}
