package migrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRollbackChanges: what was changed since the migration is in what comes back, and that can be migrated again.
func TestRollbackChanges(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	id := legacytest.ID(500)
	dir := t.TempDir()
	path := filepath.Join(dir, id+".json")
	text := strings.Replace(legacytest.Whole(id), `"active_branch_name":"main"`, `"active_branch_name":"nowhere","title":null`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	done := kit.Must[migrate.Result](t)(migrate.Convert(ctx, s, path, migrate.Options{}))
	c := kit.Must[*engine.Context](t)(s.Context(ctx, done.Context))
	defer c.Close()
	long := strings.Repeat("long ", 1000)
	alt := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 2))
	kit.Append(t, alt, engine.Draft{Body: []byte(`{"role":"assistant","content":[{"type":"text","text":"` + long + `"}],"n":1.50}`)})
	other := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "other"))
	one := uuid.MustParse(legacytest.ID(1))
	kit.Append(t, other, engine.Draft{ID: one, Body: []byte(`{"role":"User","content":[],"another":"version"}`)})
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	err := errors.Join(c.Rename(ctx, "main", "trunk"), c.Switch(ctx, "alt"), c.Update(ctx, func(m *engine.Metadata) error {
		m.Title, m.State = "New", json.RawMessage(`{"awaiting":{"n":1.0}}`)
		m.Config.SetText("mode", "agent")
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	back := filepath.Join(dir, "back.json")
	if got := kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, back, migrate.RollbackOptions{})); got.Messages != 4 {
		t.Errorf("%+v", got)
	}
	var o struct {
		Title    string
		Active   string          `json:"active_branch_name"`
		State    json.RawMessage `json:"current_state"`
		Config   map[string]any
		Branches map[string]struct {
			Name string
			IDs  []string `json:"message_ids"`
		}
		Pool map[string]struct {
			ID      string
			Parent  *string `json:"parent_id"`
			Message struct {
				Role    string
				Content []struct{ Type, Text string }
				Another string
				Was     struct{ N json.Number } `json:"original"`
			}
		} `json:"message_pool"`
	}
	if err := json.Unmarshal(kit.Must[[]byte](t)(os.ReadFile(back)), &o); err != nil {
		t.Fatal(err)
	}
	if o.Title != "New" || o.Active != "alt" || o.Config["mode"] != "agent" || !strings.Contains(string(o.State), "1.0") {
		t.Errorf("%q, %q, %v, %s", o.Title, o.Active, o.Config, o.State)
	}
	trunk, fork, apart := o.Branches["trunk"], o.Branches["alt"], o.Branches["other"]
	if len(o.Branches) != 3 || trunk.Name != "trunk" || len(trunk.IDs) != 2 || len(apart.IDs) != 1 ||
		len(fork.IDs) != 3 || fork.IDs[1] != trunk.IDs[1] {
		t.Fatalf("%+v", o.Branches)
	}
	added := o.Pool[fork.IDs[2]]
	if added.Message.Role != "Assistant" || added.Message.Content[0].Text != long || added.Message.Was.N != "1.50" ||
		added.Parent == nil || *added.Parent != legacytest.ID(2) {
		t.Errorf("%+v", added)
	}
	// The other version of a message is another one.
	version := o.Pool[apart.IDs[0]]
	if version.ID != apart.IDs[0] || version.ID == one.String() || version.Message.Another != "version" ||
		o.Pool[one.String()].Message.Another != "" {
		t.Errorf("%+v", version)
	}
	var differs *engine.Error
	_, err = migrate.RestoreLegacy(ctx, s, done.Context, migrate.RollbackOptions{})
	if !errors.Is(err, engine.ErrConflict) || !errors.As(err, &differs) || len(differs.Differs) < 8 {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the old file was put back")
	}
	again, _ := kit.NewStore(t)
	if got, err := migrate.Convert(ctx, again, back, migrate.Options{}); err != nil || got.Messages != 4 || got.Branches != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRollbackNames: a branch that could not have its name here gives it back, but not where another one has it by now.
func TestRollbackNames(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	path := filepath.Join(t.TempDir(), legacytest.ID(500)+".json")
	text := strings.Replace(legacytest.Whole(legacytest.ID(500)), `"branches":{`, `"branches":{"Main":{"name":"Main","message_ids":[]},`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	done := kit.Must[migrate.Result](t)(migrate.Convert(ctx, s, path, migrate.Options{}))
	c := kit.Must[*engine.Context](t)(s.Context(ctx, done.Context))
	defer c.Close()
	names := func(back string) []string {
		back = filepath.Join(filepath.Dir(path), back)
		kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, back, migrate.RollbackOptions{}))
		f := kit.Must[*legacy.File](t)(legacy.Open(kit.Must[vfs.FS](t)(vfs.OS(filepath.Dir(back))), filepath.Base(back), legacy.Options{}))
		defer f.Close()
		var names []string
		for _, b := range f.Branches {
			names = append(names, string(b.Name))
		}
		slices.Sort(names)
		return names
	}
	if got := names("first.json"); !slices.Equal(got, []string{`"Main"`, `"main"`}) {
		t.Errorf("%q", got)
	}
	if err := errors.Join(c.Switch(ctx, "Main-2"), c.Remove(ctx, "main")); err != nil {
		t.Fatal(err)
	}
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "Main"))
	if got := names("second.json"); !slices.Equal(got, []string{`"Main"`, `"Main-2"`}) {
		t.Errorf("%q", got)
	}
}

// TestRollbackMade: a branch that is none in a legacy context becomes one by whatever is done with it, and what is
// added to the whole comes back.
func TestRollbackMade(t *testing.T) {
	ctx := context.Background()
	whole := legacytest.Whole(legacytest.ID(500))
	short := strings.Replace(whole, `,"`+legacytest.ID(2)+`"]`, "]", 1)
	short = strings.Replace(short, `"message_ids":["`+legacytest.ID(1)+`"]`, `"message_ids":[]`, 1)
	bare := `{"id":"` + legacytest.ID(500) + `","message_pool":{},"branches":{}}`
	twice := strings.Replace(bare, `{"id"`, `{"title":"first","title":"second","id"`, 1)
	say := func(c *engine.Context, name string) error {
		b, err := c.Branch(name)
		if err == nil {
			_, err = b.Append(ctx, engine.Draft{Body: []byte(`{"role":"User","content":[]}`)})
		}
		return err
	}
	rewind := func(c *engine.Context) error {
		b, err := c.Branch("unlisted")
		if err == nil {
			err = b.Rewind(ctx, 1)
		}
		return err
	}
	tests := []struct {
		name, text string
		do         func(c *engine.Context) error
		want       string // in what comes back
		not        string
	}{
		{"nothing", short, func(*engine.Context) error { return nil }, `"main":`, `"unlisted":`},
		{"append", short, func(c *engine.Context) error { return say(c, "unlisted") }, `"unlisted":`, "no such"},
		{"rewind", short, rewind, `"unlisted":`, "no such"},
		{"rewind and append", short, func(c *engine.Context) error {
			return errors.Join(rewind(c), say(c, "unlisted"))
		}, `"unlisted":`, "no such"},
		{"rename", short, func(c *engine.Context) error { return c.Rename(ctx, "unlisted", "kept") }, `"kept":`, `"unlisted":`},
		{"switch", short, func(c *engine.Context) error { return c.Switch(ctx, "unlisted") }, `"unlisted":`, "no such"},
		{"rename where there was none", bare, func(c *engine.Context) error { return c.Rename(ctx, "main", "trunk") }, `"trunk":`, `"main"`},
		{"a member", whole, func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Extra.SetText("note", "mine"); return nil })
		}, `"note":"mine"`, `"legacy"`},
		{"a place that was not taken", bare, func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Config.SetText("mode", "new"); return nil })
		}, `"config":{"mode":"new"}`, `"title"`},
		{"a title, of two", twice, func(c *engine.Context) error {
			return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "third"; return nil })
		}, `"title":"first","title":"third"`, `"second"`},
	}
	for _, test := range tests {
		s, _ := kit.NewStore(t)
		path, done := migrated(t, s, test.text)
		c := kit.Must[*engine.Context](t)(s.Context(ctx, done.Context))
		defer c.Close()
		same := kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, path+".same", migrate.RollbackOptions{}))
		unchanged := compactFile(t, same.Path)
		if test.name != "nothing" && strings.Contains(unchanged, test.want) ||
			test.text == twice && unchanged != compactFile(t, done.Backup) {
			t.Errorf("%s, before: %s", test.name, unchanged)
		}
		if err := test.do(c); err != nil {
			t.Fatal(test.name, err)
		}
		back := kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, path+".back", migrate.RollbackOptions{}))
		got := compactFile(t, back.Path)
		if !strings.Contains(got, test.want) || strings.Contains(got, test.not) {
			t.Errorf("%s: %s", test.name, got)
		}
		var differs *engine.Error
		_, err := migrate.RestoreLegacy(ctx, s, done.Context, migrate.RollbackOptions{})
		if (errors.As(err, &differs) && len(differs.Differs) > 0) != (test.name != "nothing") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func compactFile(t *testing.T, path string) string {
	t.Helper()
	v := jsontext.Value(kit.Must[[]byte](t)(os.ReadFile(path)))
	kit.Check(t, v.Compact(jsontext.AllowDuplicateNames(true)))
	return string(v)
}
