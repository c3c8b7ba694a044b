package migrate_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// migrateOn migrates the legacy context at a path of a disk whose root is a store.
func migrateOn(disk vfs.FS, at string) (migrate.Result, error) {
	s, err := kit.Open("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithLockTimeout(time.Millisecond))
	if err != nil {
		return migrate.Result{}, err
	}
	defer s.Close()
	from, err := disk.Sub(path.Dir(at))
	if err != nil {
		return migrate.Result{}, err
	}
	defer from.Close()
	return migrate.From(context.Background(), s, from, path.Base(at), "/disk/"+at)
}

// TestMigrateBeside: three processes migrate the same legacy context. Before each file-system operation of the first,
// the second does the whole migration, and before some of its operations the third does. Each of them succeeds, or
// finds the lock held by an earlier one.
func TestMigrateBeside(t *testing.T) {
	for _, where := range []string{"file in the store", "folder in the store", "file elsewhere", "folder elsewhere"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			fresh, id, _ := legacyOnDisk(t, strings.HasPrefix(where, "folder"))
			at := id.String()
			if strings.HasPrefix(where, "file") {
				at += ".json"
			}
			if strings.HasSuffix(where, "elsewhere") {
				kit.Check(t, fresh.Mkdir("old"), fresh.Rename(at, "old/"+at), fresh.SyncDir("old"), fresh.SyncDir("."))
				at = "old/" + at
			}
			for third := 0; third < 200; third += 1 + 12*kit.Stride() {
				for second := 1; ; second++ {
					disk, running := fresh.Clone(), 0
					before, met := []int{second, third}, []int{0, 0}
					disk.Fail(func(crashfs.Op) error {
						n := running
						if n == len(before) {
							return nil
						}
						if met[n]++; met[n] == before[n] {
							running++
							if _, err := migrateOn(disk, at); err != nil && !errors.Is(err, engine.ErrLocked) {
								t.Errorf("before operations %v, process %d: %v", before, running+1, err)
							}
							running--
						}
						return nil
					})
					if _, err := migrateOn(disk, at); err != nil {
						t.Errorf("before operations %v, the first process: %v", before, err)
					}
					disk.Fail(nil)
					besideMigrated(t, disk, id, at)
					if met[0] < second {
						if second < 20 {
							t.Errorf("%d operations", second-1)
						}
						break
					}
					if third > 0 {
						second += 4 * kit.Stride()
					}
				}
			}
		})
	}
}

// besideMigrated fails unless there is one context, whole, and the legacy one with its suffix.
func besideMigrated(t *testing.T, disk *crashfs.FS, id uuid.UUID, at string) {
	t.Helper()
	s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Context(context.Background(), id))
	defer c.Close()
	ms := kit.Load(t, c.Active())
	if len(ms) != 2 || ms[1].ID.String() != legacytest.ID(2) || c.Legacy() != "" {
		t.Fatalf("%d messages", len(ms))
	}
	if _, err := disk.Lstat(at + ".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Lstat(at + ".old-2"); err == nil {
		t.Fatal("there are two with the suffix")
	}
	kit.NothingFound(t, "afterwards", s, checking.Options{ReadData: true})
}
