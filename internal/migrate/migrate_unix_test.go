//go:build unix

package migrate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/migrate"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestMigrateImmovable: what cannot get its suffix is not migrated at all, and the reason names it and its folder.
func TestMigrateImmovable(t *testing.T) {
	if !kit.AsNobody(t) {
		return
	}
	s, store := kit.NewStore(t)
	dir := t.TempDir()
	put := func(name string) string {
		path := filepath.Join(dir, name)
		kit.Check(t, os.WriteFile(path, []byte(legacytest.Whole(legacytest.ID(500))), 0o600))
		return path
	}
	long, short := put(strings.Repeat("x", 247)+".json"), put("short.json")
	kit.Check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, path := range []string{long, short} {
		_, err := migrate.Convert(context.Background(), s, path, migrate.Options{})
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%v", err)
		}
		if path == short && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v", err)
		}
	}
	for id, err := range s.IDs() {
		t.Error(id, err)
	}
	if left := kit.Must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(store, "staging"))); len(left) > 0 {
		t.Error(left)
	}
	kit.Check(t, os.Chmod(dir, 0o700))
	if done, err := migrate.Convert(context.Background(), s, short, migrate.Options{}); err != nil || done.Again {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestMigrateUnnameable: a file that could not be found again for its name is not migrated.
func TestMigrateUnnameable(t *testing.T) {
	s, _ := kit.NewStore(t)
	path := filepath.Join(t.TempDir(), "old-\xff.json")
	if err := os.WriteFile(path, []byte(legacytest.Whole(legacytest.ID(500))), 0o600); err != nil {
		t.Skip(err)
	}
	done, err := migrate.Convert(context.Background(), s, path, migrate.Options{})
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}
