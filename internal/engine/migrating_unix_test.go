//go:build unix

package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/legacytest"
)

// TestMigrateImmovable: what cannot get its suffix is not migrated at all, and the reason names it and its folder.
func TestMigrateImmovable(t *testing.T) {
	if !asNobody(t) {
		return
	}
	s, store := newStore(t)
	dir := t.TempDir()
	put := func(name string) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(legacytest.Whole(legacytest.ID(500))), 0o600))
		return path
	}
	long, short := put(strings.Repeat("x", 247)+".json"), put("short.json")
	check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, path := range []string{long, short} {
		_, err := s.Migrate(context.Background(), path, MigrateOptions{})
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
	if left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(store, "staging"))); len(left) > 0 {
		t.Error(left)
	}
	check(t, os.Chmod(dir, 0o700))
	if done, err := s.Migrate(context.Background(), short, MigrateOptions{}); err != nil || done.Again {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestMigrateUnnameable: a file that could not be found again for its name is not migrated.
func TestMigrateUnnameable(t *testing.T) {
	s, _ := newStore(t)
	path := filepath.Join(t.TempDir(), "old-\xff.json")
	if err := os.WriteFile(path, []byte(legacytest.Whole(legacytest.ID(500))), 0o600); err != nil {
		t.Skip(err)
	}
	done, err := s.Migrate(context.Background(), path, MigrateOptions{})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}
