package legacy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TestLostPool: a split context whose messages are gone is damaged, not empty, whichever way it is asked for.
func TestLostPool(t *testing.T) {
	for _, where := range []string{"messages_pool.old", "messages_pool", ""} {
		fsys := put(t, "x/context.json", legacytest.Split(legacytest.Whole(id)))
		if where != "" {
			if err := vfs.WriteSynced(fsys, "x/"+where, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"x", "x/context.json"} {
			f, err := legacy.Open(fsys, name, legacy.Options{})
			if !errors.Is(err, legacy.ErrDamaged) || !strings.Contains(err.Error(), "without its messages") {
				t.Errorf("%s with %q: %v, %v", name, where, f, err)
			}
		}
	}
}

// TestOddNodes: what is no file among the nodes is not passed over.
func TestOddNodes(t *testing.T) {
	for what, odd := range map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink("../context.json", path) },
	} {
		dir := t.TempDir()
		pool := filepath.Join(dir, "x", "messages_pool")
		text := legacytest.Split(legacytest.Whole(id))
		if err := errors.Join(os.MkdirAll(pool, 0o700), os.WriteFile(filepath.Join(dir, "x", "context.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := odd(filepath.Join(pool, legacytest.ID(1)+".json")); err != nil {
			t.Skip(err)
		}
		fsys, err := vfs.OS(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer fsys.Close()
		_, err = legacy.Open(fsys, "x", legacy.Options{})
		if !errors.Is(err, legacy.ErrDamaged) || !strings.Contains(err.Error(), legacytest.ID(1)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
