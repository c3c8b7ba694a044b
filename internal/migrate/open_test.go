package migrate_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestLegacyView: where nothing is migrated, a legacy context is read through the same API, and nothing changes.
func TestLegacyView(t *testing.T) {
	ctx := context.Background()
	for _, options := range [][]engine.Option{{viewing}, {engine.ReadOnly()}} {
		_, dir := kit.NewStore(t)
		id := uuid.MustParse(legacytest.ID(500))
		path := dir + "/" + id.String() + ".json"
		if err := os.WriteFile(path, []byte(legacytest.Whole(id.String())), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", t.TempDir())
		s := kit.Must[*engine.Store](t)(kit.Open(dir, options...))
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		if c.Legacy() != engine.LegacyFile || c.ID() != id {
			t.Errorf("%q, %s", c.Legacy(), c.ID())
		}
		if got := kit.Load(t, c.Active()); len(got) != 2 || got[1].ID.String() != legacytest.ID(2) || got[1].Role != "User" {
			t.Errorf("%+v", got)
		}
		if _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)}); !errors.Is(err, engine.ErrReadOnly) {
			t.Errorf("append: %v", err)
		}
		c.Close()
		if left := kit.Must[[]os.DirEntry](t)(os.ReadDir(os.Getenv("TMPDIR"))); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
		rows := 0
		for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
			if rows++; err != nil || sum.Format != engine.LegacyFile || sum.Messages != 2 || sum.Branches != 1 || sum.Problem != nil {
				t.Errorf("%+v, %v", sum, err)
			}
		}
		if rows != 1 {
			t.Errorf("%d rows", rows)
		}
		for id, err := range s.IDs() {
			t.Error(id, err)
		}
	}
}

// TestScratch: what a view needs is in staging/, and swept where it is left behind.
func TestScratch(t *testing.T) {
	ctx := context.Background()
	_, dir := kit.NewStore(t)
	id := uuid.MustParse(legacytest.ID(500))
	kit.Check(t, os.WriteFile(dir+"/"+id.String()+".json", []byte(legacytest.Whole(id.String())), 0o600))
	count := func(folder string) int { return len(kit.Must[[]os.DirEntry](t)(os.ReadDir(folder))) }
	t.Setenv("TMPDIR", t.TempDir())
	locks := count(dir + "/locks")
	s := kit.Must[*engine.Store](t)(kit.Open(dir, viewing))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
	kit.Must[migrate.Result](t)(migrate.Convert(ctx, s, dir+"/"+id.String()+".json", migrate.Options{DryRun: true}))
	if in, tmp := count(dir+"/staging"), count(os.Getenv("TMPDIR")); in != 1 || tmp != 0 {
		t.Errorf("%d in staging, %d in the temporary folder", in, tmp)
	}
	reader := kit.Must[*engine.Store](t)(kit.Open(dir, engine.ReadOnly()))
	view := kit.Must[*engine.Context](t)(reader.Context(ctx, id))
	if in, tmp := count(dir+"/staging"), count(os.Getenv("TMPDIR")); in != 1 || tmp != 1 {
		t.Errorf("for reading only: %d in staging, %d in the temporary folder", in, tmp)
	}
	kit.Check(t, view.Close(), reader.Close())
	other := kit.Must[*engine.Store](t)(kit.Open(dir)) // it sweeps, but not what is in use
	other.Close()
	if got := kit.Load(t, c.Active()); len(got) != 2 {
		t.Errorf("%d messages", len(got))
	}
	left := t.TempDir()
	kit.Check(t, os.CopyFS(left, os.DirFS(dir)))
	kit.Must[*engine.Store](t)(kit.Open(left)).Close()
	c.Close()
	for _, in := range []string{dir, left} {
		if n := count(in + "/staging"); n != 0 {
			t.Errorf("%d left in staging of %s", n, in)
		}
	}
	if n := count(dir + "/locks"); n != locks {
		t.Errorf("%d locks, there were %d", n, locks)
	}
}

// TestLegacyListed: a legacy context that did not change is not read again for a list; one that did is, and one that
// was migrated is one of ours.
func TestLegacyListed(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	id := uuid.MustParse(legacytest.ID(500))
	path := dir + "/" + id.String() + ".json"
	write := func(text string, age time.Duration) {
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	row := func() (only listing.Summary) {
		n := 0
		for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			only, n = sum, n+1
		}
		if n != 1 {
			t.Fatalf("%d rows", n)
		}
		return only
	}
	whole := legacytest.Whole(id.String())
	titled := strings.Replace(whole, `"config"`, `"title":"first","config"`, 1)
	write(titled, time.Hour)
	if got := row(); got.Title != "first" || got.Format != engine.LegacyFile {
		t.Errorf("%+v", got)
	}
	// The same size and time, so that only a cache can say "first".
	info := kit.Must[os.FileInfo](t)(os.Lstat(path))
	kit.Check(t, os.WriteFile(path, []byte(strings.Replace(titled, "first", "other", 1)), 0o600),
		os.Chtimes(path, info.ModTime(), info.ModTime()))
	if got := row(); got.Title != "first" || got.Messages != 2 || got.Format != engine.LegacyFile {
		t.Errorf("not from the cache: %+v", got)
	}
	write(strings.Replace(titled, "first", "third", 1), time.Minute)
	if got := row(); got.Title != "third" {
		t.Errorf("%+v", got)
	}
	write(whole[:100], time.Minute)
	if got := row(); !errors.Is(got.Problem, engine.ErrDamaged) || got.Format != engine.LegacyFile {
		t.Errorf("%+v", got)
	}
	write(whole, time.Minute)
	kit.Must[*engine.Context](t)(s.Context(ctx, id)).Close()
	if got := row(); got.Format != "" || got.Messages != 2 || got.Problem != nil {
		t.Errorf("%+v", got)
	}
}

// viewing shows legacy contexts without migrating them.
var viewing = engine.OpenLegacy(func(ctx context.Context, s *engine.Store, id uuid.UUID, name string) (*engine.Context, error) {
	return migrate.View(ctx, s, id, name)
})
