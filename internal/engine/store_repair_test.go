//go:build unix

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/google/uuid"
)

// TestReplacedInStore: what lies in a store where something of ours belongs is told, and moved to trash unless it may be all that is
// left of a context; the contexts are what they were.
func TestReplacedInStore(t *testing.T) {
	ctx := context.Background()
	link := func(path, outside string) error { return os.Symlink(outside, path) }
	linkUp := func(path, outside string) error { return os.Symlink(filepath.Dir(outside), path) }
	file := func(path, _ string) error { return os.WriteFile(path, []byte("x"), 0o600) }
	fifo := func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }
	folder := func(path, _ string) error { return os.Mkdir(path, 0o700) }
	for name, x := range map[string]struct {
		path string
		make func(path, outside string) error
		kind integrity.Kind
		left int
	}{
		"context as link":         {testID(9).String(), linkUp, integrity.KindContext, 1},
		"context as file":         {testID(9).String(), file, integrity.KindContext, 1},
		"context as FIFO":         {testID(9).String(), fifo, integrity.KindContext, 1},
		"lock of gc as folder":    {"locks/gc", folder, integrity.KindLock, 0},
		"lock of blobs as FIFO":   {"locks/blobs", fifo, integrity.KindLock, 0},
		"lock of gc as link":      {"locks/gc", link, integrity.KindLock, 0},
		"folder of blobs as file": {"blobs/ab", file, integrity.KindFolder, 0},
		"locks as link":           {"locks", linkUp, integrity.KindFolder, 1},
		"staging as link":         {"staging", linkUp, integrity.KindFolder, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, folder := newContext(t, WithTextThreshold(100))
			fill(t, c.Active(), 5)
			check(t, c.Fold(ctx))
			want := bodies(t, c.Active())
			outside := filepath.Join(t.TempDir(), "outside")
			check(t, os.WriteFile(outside, []byte("outside"), 0o600))
			path := filepath.Join(filepath.Dir(folder), x.path)
			check(t, os.RemoveAll(path))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := x.make(path, outside); err != nil {
				t.Skipf("this cannot be made here: %v", err)
			}
			p := &patient{t: t, store: c.store}
			if found := p.check(true); len(found) != 1 || found[0].Kind != x.kind || found[0].Severity != SeverityError || found[0].Path != x.path {
				t.Errorf("%+v", found)
			}
			if done := p.repair(CheckOptions{}); len(done) != 1-x.left {
				t.Errorf("%+v", done)
			}
			if found := p.check(true); len(found) != x.left {
				t.Errorf("after the repair: %+v", found)
			}
			again := must[*Context](t)(c.store.Context(ctx, c.ID()))
			defer again.Close()
			_, _ = again.Active().Append(ctx, Draft{Body: []byte(`{"after":1}`)}) // with the locks away it cannot be
			want = want[:5]
			if got := bodies(t, again.Active())[:5]; !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
			entries := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(outside)))
			if len(entries) != 1 || string(must[[]byte](t)(os.ReadFile(outside))) != "outside" {
				t.Error("something outside was changed")
			}
		})
	}
}

// TestCollectBesideAFold: message files are removed when nobody folds, who could make them again.
func TestCollectBesideAFold(t *testing.T) {
	ctx := context.Background()
	c, folder := newContext(t, WithFoldBytes(-1), WithLockTimeout(1))
	gone := must[*Branch](t)(c.Active().Fork(ctx, "gone", 0))
	fill(t, gone, 3)
	check(t, c.Fold(ctx), c.Remove(ctx, "gone"))
	files := filepath.Join(folder, "messages", "branch-gone", "*.json")
	folding := must[*Context](t)(c.store.Context(ctx, c.ID()))
	defer folding.Close()
	check(t, folding.dir.FoldLock.Acquire(ctx))
	var failed error
	for _, err := range c.store.Collect(ctx, Collecting{Contexts: []uuid.UUID{c.ID()}, Grace: DefaultGrace}) {
		failed = errors.Join(failed, err)
	}
	if left := must[[]string](t)(filepath.Glob(files)); len(left) != 3 || !errors.Is(failed, ErrLocked) {
		t.Errorf("%d files are left, %v", len(left), failed)
	}
	check(t, folding.dir.FoldLock.Release())
	collect(t, c.store, Collecting{Contexts: []uuid.UUID{c.ID()}, Grace: DefaultGrace})
	if left := must[[]string](t)(filepath.Glob(files)); len(left) != 0 || len(trashOf(t, c.store, "line")) != 1 {
		t.Errorf("%v are left", left)
	}
}
