package migrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// splitUp makes a split context of a monolithic one: nodes whose keys can be names of files get files, the others stay.
func splitUp(t *rapid.T, dir, text string) {
	ms, err := legacy.MembersOf(jsontext.Value(text))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := legacy.MembersOf(ms.Get("message_pool"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(dir, "messages_pool"), 0o700))
	var inline legacy.Members
	for _, n := range pool {
		key, _ := legacy.Text(n.Name)
		if _, err := uuid.Parse(key); err != nil {
			inline = append(inline, n)
			continue
		}
		check(os.WriteFile(filepath.Join(dir, "messages_pool", key+".json"), n.Value, 0o600))
	}
	ms[ms.Last("message_pool")].Value = inline.Object(nil)
	check(os.WriteFile(filepath.Join(dir, "context.json"), ms.Object(nil), 0o600))
	if rapid.Bool().Draw(t, "prompt file") {
		check(os.WriteFile(filepath.Join(dir, "system_prompt.json"), []byte(`{"id":"p","content":"Be kind.","n":1.0}`), 0o600))
	}
}

// TestMigrateSplit: a split context comes back file by file, and as one file where that is asked for.
func TestMigrateSplit(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	top := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n)
		dir := filepath.Join(top, id)
		splitUp(rt, dir, legacytest.Draw(rt, id))
		done, err := migrate.Convert(ctx, s, dir, migrate.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		c, err := s.Context(ctx, done.Context)
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		if _, err := migrate.Rollback(ctx, c, dir+".back", migrate.RollbackOptions{}); err != nil {
			rt.Fatal(err)
		}
		sameFolders(t, done.Backup, dir+".back")
		sameFolders(t, dir+".back", done.Backup)
		whole, err := migrate.Rollback(ctx, c, dir+".json", migrate.RollbackOptions{})
		if err != nil || whole.Messages != done.Messages {
			rt.Fatal(whole, err)
		}
		one := kit.DecodeJSON(rt, kit.Must[[]byte](t)(os.ReadFile(dir+".json"))).(map[string]any)
		if prompt, err := os.ReadFile(filepath.Join(done.Backup, "system_prompt.json")); err == nil {
			if p, _ := json.Marshal(one["system_prompt"]); !kit.SameJSON(rt, p, prompt) {
				rt.Fatalf("the system prompt came back as %s", p)
			}
		}
		pool, _ := one["message_pool"].(map[string]any)
		if err := filepath.WalkDir(filepath.Join(done.Backup, "messages_pool"), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			n, _ := json.Marshal(pool[strings.TrimSuffix(e.Name(), ".json")])
			if !kit.SameJSON(rt, n, kit.Must[[]byte](t)(os.ReadFile(path))) {
				rt.Fatalf("%s came back as %s", path, n)
			}
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// TestMigrateTwins: branches that bear one name in the legacy context come back as that.
func TestMigrateTwins(t *testing.T) {
	s, _ := kit.NewStore(t)
	text := strings.Replace(legacytest.Whole(legacytest.ID(500)), `"branches":{`,
		`"branches":{"main":{"name":"main","message_ids":[]},"main":{"message_ids":[]},`, 1)
	path, done := migrated(t, s, text)
	c := kit.Must[*engine.Context](t)(s.Context(context.Background(), done.Context))
	defer c.Close()
	back := kit.Must[migrate.RollbackResult](t)(migrate.Rollback(context.Background(), c, path+".back", migrate.RollbackOptions{}))
	if got := compactFile(t, back.Path); done.Branches != 3 || strings.Count(got, `"main":{`) != 3 {
		t.Errorf("%+v, %s", done, got)
	}
}

// TestMigrateStopped: stopped in the middle, a migration leaves everything as it was, and can be done again.
func TestMigrateStopped(t *testing.T) {
	s, store := kit.NewStore(t)
	id := legacytest.ID(500)
	path := filepath.Join(t.TempDir(), id+".json")
	if err := os.WriteFile(path, []byte(legacytest.Whole(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for at := 1; ; at++ {
		ctx, stop := context.WithCancel(context.Background())
		calls = 0
		_, err := migrate.Convert(ctx, s, path, migrate.Options{Progress: func(done, all int64) {
			if done < 0 || all <= 0 {
				t.Errorf("%d of %d", done, all)
			}
			if calls++; calls == at {
				stop()
			}
		}})
		stop()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{id, "staging/" + id} {
			if _, err := os.Lstat(filepath.Join(store, left)); err == nil {
				t.Errorf("%s is there", left)
			}
		}
	}
	if calls < 3 {
		t.Errorf("told of progress %d times", calls)
	}
	// A copy of what was migrated only gets the suffix.
	if err := os.WriteFile(path, []byte(legacytest.Whole(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := migrate.Convert(context.Background(), s, path, migrate.Options{})
	if err != nil || !done.Again || done.Backup != path+".old-2" {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestSplitOdd: a split context comes back whatever its context.json says of the pool, and with names as long as they
// can be.
func TestSplitOdd(t *testing.T) {
	ctx := context.Background()
	id := legacytest.ID(500)
	text := legacytest.Split(legacytest.Whole(id))
	for _, pool := range []string{`"message_pool":{},`, `"message_pool":null,`, ``} {
		s, _ := kit.NewStore(t)
		dir := filepath.Join(t.TempDir(), "x")
		kit.Check(t, os.MkdirAll(filepath.Join(dir, "messages_pool"), 0o700))
		kit.Check(t, os.WriteFile(filepath.Join(dir, "context.json"), []byte(strings.Replace(text, `"message_pool":{},`, pool, 1)), 0o600))
		for _, key := range []string{legacytest.ID(1), legacytest.ID(2), strings.Repeat("k", 250)} {
			kit.Check(t, os.WriteFile(filepath.Join(dir, "messages_pool", key+".json"), []byte(`{"message":{"role":"User","content":[]}}`), 0o600))
		}
		done := kit.Must[migrate.Result](t)(migrate.Convert(ctx, s, dir, migrate.Options{}))
		c := kit.Must[*engine.Context](t)(s.Context(ctx, done.Context))
		defer c.Close()
		kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, dir+".back", migrate.RollbackOptions{}))
		sameFolders(t, done.Backup, dir+".back")
		sameFolders(t, dir+".back", done.Backup)
		whole := compactFile(t, kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, dir+".json", migrate.RollbackOptions{})).Path)
		if strings.Count(whole, `"message_pool":{"`) != 1 || strings.Count(whole, `"message_pool"`) != 1 {
			t.Errorf("%s as one file: %s", pool, whole)
		}
		if done.Messages != 3 {
			t.Errorf("%s: %+v", pool, done)
		}
		kit.Must[migrate.RollbackResult](t)(migrate.RestoreLegacy(ctx, s, done.Context, migrate.RollbackOptions{}))
	}
}

// TestLostPool: a split context in the store whose messages are gone is a problem that is told, and nobody makes an
// empty context of it.
func TestLostPool(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	id := uuid.MustParse(legacytest.ID(500))
	folder := filepath.Join(dir, id.String())
	text := legacytest.Split(legacytest.Whole(id.String()))
	kit.Check(t, os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "context.json"), []byte(text), 0o600))
	if _, err := s.Context(ctx, id); !errors.Is(err, engine.ErrDamaged) {
		t.Errorf("opened: %v", err)
	}
	rows := 0
	for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
		if rows++; err != nil || !errors.Is(sum.Problem, engine.ErrDamaged) || sum.Format != engine.LegacySplit {
			t.Errorf("%+v, %v", sum, err)
		}
	}
	for _, ids := range [][]uuid.UUID{{id}, nil} {
		left := 0
		for r, err := range checking.Repair(ctx, s, ids, checking.Options{Progress: func(p checking.Progress) { left = p.Left }}) {
			t.Errorf("repaired %+v, %v", r, err)
		}
		found := 0
		for f, err := range checking.Check(ctx, s, ids, checking.Options{}) {
			if found++; err != nil || f.Kind != "legacy" || f.Severity != integrity.SeverityError || f.Repairable || f.Context != id {
				t.Errorf("%+v, %v", f, err)
			}
		}
		if rows != 1 || found != 1 || left != 1 {
			t.Errorf("%d rows, %d findings, %d left", rows, found, left)
		}
	}
	if _, err := migrate.Convert(ctx, s, filepath.Join(folder, "context.json"), migrate.Options{}); !errors.Is(err, engine.ErrDamaged) {
		t.Errorf("migrated: %v", err)
	}
	if left := kit.Must[[]os.DirEntry](t)(os.ReadDir(folder)); len(left) != 1 {
		t.Errorf("%v", left)
	}
	// With them, its context.json stands for the folder.
	pool := filepath.Join(folder, "messages_pool")
	kit.Check(t, os.Mkdir(pool, 0o700))
	for n := 1; n <= 2; n++ {
		kit.Check(t, os.WriteFile(filepath.Join(pool, legacytest.ID(n)+".json"), []byte(`{"message":{}}`), 0o600))
	}
	done := kit.Must[migrate.Result](t)(migrate.Convert(ctx, s, filepath.Join(folder, "context.json"), migrate.Options{}))
	if done.Messages != 2 || done.Backup != folder+".old" {
		t.Errorf("%+v", done)
	}
}
