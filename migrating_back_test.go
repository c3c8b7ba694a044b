package ctxdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/legacytest"
)

// migrated puts a file into a new folder and migrates it.
func migrated(t *testing.T, s *Store, text string) (path string, done Migrated) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.json")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path, must[Migrated](t)(s.Migrate(context.Background(), path, MigrateOptions{}))
}

// TestRestoreLegacyLocks: what is appended while the old file is put back either keeps it from being put back, or is refused.
func TestRestoreLegacyLocks(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	_, done := migrated(t, s, legacytest.Whole(legacytest.ID(500)))
	other := must[*Store](t)(Open(dir, WithLockTimeout(time.Millisecond)))
	defer other.Close()
	c := must[*Context](t)(other.Context(ctx, done.Context))
	defer c.Close()
	tried := 0
	_, err := s.RestoreLegacy(ctx, done.Context, RollbackOptions{Progress: func(int64, int64) {
		tried++
		if _, err := c.Active().Append(ctx, Draft{Body: []byte(`{}`)}); !errors.Is(err, ErrLocked) {
			t.Errorf("appended in the midst of it: %v", err)
		}
	}})
	if err != nil || tried == 0 {
		t.Errorf("%v, tried %d times", err, tried)
	}
	if _, err := c.Active().Append(ctx, Draft{Body: []byte(`{}`)}); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestMigrateBackup: what was migrated keeps its name, whoever asks for it.
func TestMigrateBackup(t *testing.T) {
	s, _ := newStore(t)
	path, done := migrated(t, s, legacytest.Whole(legacytest.ID(500)))
	again, _ := newStore(t)
	for _, to := range []*Store{s, again} {
		if _, err := to.Migrate(context.Background(), done.Backup, MigrateOptions{}); !errors.Is(err, ErrNotLegacy) {
			t.Errorf("%v", err)
		}
	}
	if back := must[RolledBack](t)(s.RestoreLegacy(context.Background(), done.Context, RollbackOptions{})); back.Path != path {
		t.Errorf("%+v", back)
	}
}
