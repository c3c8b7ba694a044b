package migrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestMigrateAnything: whatever a legacy context is like, it comes back equal; and what its branches show are its
// lists.
func TestMigrateAnything(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n)
		text := []byte(legacytest.Draw(t, id))
		path := filepath.Join(dir, fmt.Sprint(n)+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		done, err := migrate.Convert(ctx, s, path, migrate.Options{})
		if err != nil {
			t.Fatal(err, string(text))
		}
		if done.Context.String() != id || done.Backup != path+".old" {
			t.Fatalf("%+v", done)
		}
		c, err := s.Context(ctx, done.Context)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		back := filepath.Join(dir, fmt.Sprint(n)+".back.json")
		if _, err := migrate.Rollback(ctx, c, back, migrate.RollbackOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(back)
		if err != nil {
			t.Fatal(err)
		}
		if !kit.SameJSON(t, got, text) {
			t.Fatalf("came back as\n%s\nof\n%s\n%s", got, text, mustEncode(t, c))
		}
		sameLists(t, c, kit.DecodeJSON(t, text).(map[string]any))
		for f, err := range checking.Check(ctx, s, []uuid.UUID{done.Context}, checking.Options{ReadData: true}) {
			t.Fatal(f, err)
		}
	})
}

func mustEncode(t *rapid.T, c *engine.Context) string {
	b, err := c.Metadata().Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sameLists compares what the branches show with the lists.
func sameLists(t *rapid.T, c *engine.Context, original map[string]any) {
	ctx := context.Background()
	pool, _ := original["message_pool"].(map[string]any)
	branches, _ := original["branches"].(map[string]any)
	shown := map[string]bool{}
	for _, b := range c.Metadata().Branches {
		open, err := c.Branch(b.Name)
		if err != nil {
			t.Fatal(err)
		}
		of := migrate.ParseBranchOrigin(&b)
		var keys []string
		for m, err := range open.Messages(ctx) {
			if err != nil || m.Unavailable != nil || m.Edited {
				t.Fatal(err, m)
			}
			key := m.ID.String()
			if o := legacy.ParseSource(m.Source); o == nil {
				t.Fatalf("message %s does not say what it was", m.ID)
			} else if o.Key != nil {
				if key, _ = legacy.Text(o.Key); key != m.OriginID {
					t.Fatalf("message %s was %q, its origin_id is %q", m.ID, key, m.OriginID)
				}
			}
			keys = append(keys, key)
			shown[key] = true
			node, _ := pool[key].(map[string]any)
			body, err := m.Body(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if want, ok := node["message"].(map[string]any); ok && of.Unlisted == 0 { // there it may be one that has its key with another
				if w, _ := json.Marshal(want); !kit.SameJSON(t, body, w) {
					t.Fatalf("message %s: %s, wanted %s", key, body, w)
				}
			}
		}
		if of.Made || of.Unlisted > 0 {
			continue
		}
		name, _ := legacy.Text(of.Key(c.Metadata(), &b))
		branch, _ := branches[name].(map[string]any)
		var want []string
		list, _ := branch["message_ids"].([]any)
		for _, id := range list {
			if text, ok := id.(string); ok {
				if _, there := pool[text]; there {
					want = append(want, text)
				}
			}
		}
		if fmt.Sprint(keys) != fmt.Sprint(want) {
			t.Fatalf("branch %q shows %q, wanted %q", b.Name, keys, want)
		}
	}
	for key := range pool {
		if !shown[key] {
			t.Fatalf("no branch shows %q", key)
		}
	}
}

// TestMigrateDamaged: what cannot be migrated is told and stays, and leaves nothing behind.
func TestMigrateDamaged(t *testing.T) {
	ctx := context.Background()
	s, store := kit.NewStore(t)
	id := legacytest.ID(500)
	for _, d := range legacytest.Damaged(id) {
		path := filepath.Join(t.TempDir(), id+".json")
		if err := os.WriteFile(path, []byte(d.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, dry := range []bool{true, false} {
			_, err := migrate.Convert(ctx, s, path, migrate.Options{DryRun: dry})
			if want := map[bool]error{true: engine.ErrDamaged, false: engine.ErrNotLegacy}[d.Legacy]; !errors.Is(err, want) {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != d.Text {
			t.Errorf("%s: the file changed: %v", d.Name, err)
		}
		for _, left := range []string{filepath.Join(store, id), filepath.Join(store, "staging", id)} {
			if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s is there", d.Name, left)
			}
		}
	}
}

// TestMigrateReal: every real legacy context comes back equal.
func TestMigrateReal(t *testing.T) {
	root := os.Getenv("CTXDIR_TEST_DATA")
	if root == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder with real conversations")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "legacy"))); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	files, folders := 0, 0
	for found, err := range legacy.Find(dir) {
		if err != nil || !found.Format.Legacy() {
			t.Fatal(found, err)
		}
		done, err := migrate.Convert(ctx, s, found.Path, migrate.Options{})
		if err != nil {
			t.Error(found.Path, err)
			continue
		}
		c := kit.Must[*engine.Context](t)(s.Context(ctx, done.Context))
		back := found.Path + ".back"
		kit.Must[migrate.RollbackResult](t)(migrate.Rollback(ctx, c, back, migrate.RollbackOptions{}))
		c.Close()
		if found.Format == engine.LegacyFile {
			files++
			if !kit.SameJSON(t, kit.Must[[]byte](t)(os.ReadFile(back)), kit.Must[[]byte](t)(os.ReadFile(done.Backup))) {
				t.Errorf("%s came back as another one", found.Path)
			}
			continue
		}
		folders++
		sameFolders(t, done.Backup, back)
		sameFolders(t, back, done.Backup)
	}
	if files == 0 || folders == 0 {
		t.Errorf("%d files, %d folders", files, folders)
	}
}

// sameFolders looks for every file of one folder in another.
func sameFolders(t *testing.T, a, b string) {
	t.Helper()
	err := filepath.WalkDir(a, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		other := filepath.Join(b, strings.TrimPrefix(path, a))
		if !kit.SameJSON(t, kit.Must[[]byte](t)(os.ReadFile(path)), kit.Must[[]byte](t)(os.ReadFile(other))) {
			t.Errorf("%s came back as another one", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
