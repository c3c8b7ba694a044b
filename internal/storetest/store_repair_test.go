//go:build unix

package storetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestReplacedInStore: what lies in a store where something of ours belongs is told, and moved to trash unless it may
// be all that is left of a context; the contexts are what they were.
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
		"context as link":         {kit.TestID(9).String(), linkUp, integrity.KindContext, 1},
		"context as file":         {kit.TestID(9).String(), file, integrity.KindContext, 1},
		"context as FIFO":         {kit.TestID(9).String(), fifo, integrity.KindContext, 1},
		"lock of gc as folder":    {"locks/gc", folder, integrity.KindLock, 0},
		"lock of blobs as FIFO":   {"locks/blobs", fifo, integrity.KindLock, 0},
		"lock of gc as link":      {"locks/gc", link, integrity.KindLock, 0},
		"folder of blobs as file": {"blobs/ab", file, integrity.KindFolder, 0},
		"locks as link":           {"locks", linkUp, integrity.KindFolder, 1},
		"staging as link":         {"staging", linkUp, integrity.KindFolder, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, folder := kit.NewContext(t, engine.WithTextThreshold(100))
			kit.Fill(t, c.Active(), 5)
			kit.Check(t, c.Seal(ctx))
			want := kit.Bodies(t, c.Active())
			outside := filepath.Join(t.TempDir(), "outside")
			kit.Check(t, os.WriteFile(outside, []byte("outside"), 0o600))
			path := filepath.Join(filepath.Dir(folder), x.path)
			kit.Check(t, os.RemoveAll(path))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := x.make(path, outside); err != nil {
				t.Skipf("this cannot be made here: %v", err)
			}
			p := &kit.Patient{T: t, Store: c.Store}
			found := p.Check(true)
			if len(found) != 1 || found[0].Kind != x.kind || found[0].Severity != integrity.SeverityError || found[0].Path != x.path {
				t.Errorf("%+v", found)
			}
			if done := p.Repair(checking.Options{}); len(done) != 1-x.left {
				t.Errorf("%+v", done)
			}
			if found := p.Check(true); len(found) != x.left {
				t.Errorf("after the repair: %+v", found)
			}
			again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
			defer again.Close()
			_, _ = again.Active().Append(ctx, engine.Draft{Body: []byte(`{"after":1}`)}) // with the locks away it cannot be
			want = want[:5]
			if got := kit.Bodies(t, again.Active())[:5]; !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
			entries := kit.Must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(outside)))
			if len(entries) != 1 || string(kit.Must[[]byte](t)(os.ReadFile(outside))) != "outside" {
				t.Error("something outside was changed")
			}
		})
	}
}

// TestCollectBesideASeal: while somebody seals, a purge cannot remove messages from segments. It says so, and the next one
// does.
func TestCollectBesideASeal(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithSealBytes(-1), engine.WithLockTimeout(1))
	gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 0))
	kit.Append(t, gone, engine.Draft{Body: []byte(`{"text":"` + kit.Canary + `"}`)})
	kit.Check(t, c.Seal(ctx), c.Remove(ctx, "gone"))
	sealing := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer sealing.Close()
	kit.Check(t, sealing.Dir.SealLock.Acquire(ctx))
	var failed error
	for _, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{Contexts: []uuid.UUID{c.ID()}, Grace: 0}) {
		failed = errors.Join(failed, err)
	}
	if left := kit.FilesWith(t, folder, kit.Canary); len(left) != 1 || !errors.Is(failed, engine.ErrLocked) {
		t.Errorf("it is in %v, %v", left, failed)
	}
	kit.Check(t, sealing.Dir.SealLock.Release())
	s := kit.Must[*engine.Store](t)(kit.Open(c.Store.Path()))
	defer s.Close()
	kit.Collect(t, s, trash.CollectOptions{Contexts: []uuid.UUID{c.ID()}, Grace: 0})
	if left := kit.FilesWith(t, folder, kit.Canary); len(left) != 0 || len(kit.TrashOf(t, s, "line")) != 0 {
		t.Errorf("it is in %v", left)
	}
}
