package storetest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestArchivingFails lets each operation of an archive and an unarchive fail: it tells, everything is read as before,
// through the same handle and through a new one, and done again it works, and lasts.
func TestArchivingFails(t *testing.T) {
	for _, a := range arrangements()[:4] {
		for kind := range faulty(0) {
			t.Run(a.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				begun, before, after := a.ready(t)
				for k := range kit.Cuts(*archivingStride) {
					for _, same := range []bool{true, false} {
						disk := begun.Clone()
						w := kit.Must[*kit.World](t)(opened(disk))
						first := len(disk.Ops()) + k
						var failed crashfs.Op
						hook := faulty(first)[kind]
						disk.Fail(func(o crashfs.Op) error {
							err := hook(o)
							if err != nil && failed.Kind == "" {
								failed = o
							}
							return err
						})
						err := a.do(w)
						disk.Fail(nil)
						if failed.Kind == "" {
							if kind == "one" || len(disk.Ops()) < first {
								kit.Check(t, err)
								return
							}
							continue
						}
						if err := a.recovers(w, err, same, failed, before, after); err != nil {
							t.Fatalf("operation %d failed (%s), the same handle %v: %v\n%s", k, failed, same, err, disk.Dump())
						}
					}
				}
			})
		}
	}
}

func (a *arrangement) recovers(w *kit.World, err error, same bool, failed crashfs.Op, before, after kit.Transcript) error {
	defer func() { _ = w.Close() }()
	if err == nil { // it was not needed
		return a.collected(w, after)
	}
	if err := w.Verify(false, before); err != nil {
		return fmt.Errorf("through the same handle: %w", err)
	}
	disk := w.Store.Options.FS.(*crashfs.FS)
	if err := holds(disk, false, before); err != nil {
		return fmt.Errorf("through a new handle: %w", err)
	}
	if same {
		return a.again(w, after)
	}
	if err := w.Close(); err != nil {
		return err
	}
	if w, err = opened(disk); err != nil {
		return err
	}
	err = a.again(w, after)
	if !synced(failed.Kind) || !errors.Is(err, engine.ErrDurability) {
		return err
	}
	// The system tells one sync of the file system of the failure, here that of the second handle. The third one is told
	// of none.
	if err := w.Close(); err != nil {
		return err
	}
	if w, err = opened(disk); err != nil {
		return err
	}
	return a.again(w, after)
}
