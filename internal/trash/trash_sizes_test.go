//go:build unix

package trash_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// allocated is how much memory f asks for, in bytes, whether it gives it back or not. It counts the whole process: what
// uses it must not be a parallel test.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestHugeTrash: files in trash that are far too large are not read to list, to collect and to purge, and one that is
// to be restored is refused.
func TestHugeTrash(t *testing.T) {
	h := newHoard(t)
	const huge = 1 << 40 // sparse
	note, version, item := h.item()+"/item.json", filepath.Join(h.trash, uuid.NewString()+".json"), h.like(nil)
	for path, size := range map[string]int64{note: huge, version: 2 << 30, item + "/other": huge} {
		f := kit.Must[*os.File](t)(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Skipf("no sparse files of %d bytes here: %v", size, err)
		}
	}
	var found []engine.TrashItem
	if n := allocated(func() { found = kit.TrashOf(t, h.store, "") }); n > 16<<20 {
		t.Errorf("listing allocates %d bytes", n)
	}
	broken := 0
	for _, x := range found {
		if x.Problem != nil {
			broken++
		}
	}
	if len(found) != 4+2+3 || broken != 2 {
		t.Errorf("%+v", found)
	}
	for _, item := range []uuid.UUID{engine.ItemID(filepath.Dir(note)), uuid.MustParse(filepath.Base(version)[:36])} {
		n := allocated(func() {
			if _, err := trash.Restore(t.Context(), h.store, item); !errors.Is(err, vfs.ErrTooLarge) {
				t.Errorf("restoring %s: %v", item, err)
			}
		})
		if n > 16<<20 {
			t.Errorf("restoring %s allocates %d bytes", item, n)
		}
	}
	n := allocated(func() {
		for x, err := range trash.Purge(t.Context(), h.store, nil, 0, false) {
			if err != nil {
				t.Errorf("purging %+v: %v", x, err)
			}
		}
	})
	if left := kit.TrashOf(t, h.store, ""); n > 16<<20 || len(left) > 0 {
		t.Errorf("purging allocates %d bytes and leaves %+v", n, left)
	}
	h.unharmed()
}

// TestManyItems: thousands of items are listed, found and purged.
func TestManyItems(t *testing.T) {
	t.Parallel()
	const many = 3000
	h := newHoard(t)
	saved := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(h.dir, h.old.Path)))
	var last uuid.UUID
	for range many {
		last = uuid.Must(uuid.NewV7())
		kit.Write(t, filepath.Join(h.trash, ctxfolder.MessageFile(last)), saved)
	}
	if found := kit.TrashOf(t, h.store, "version"); len(found) != many+1 || found[many].Item != last {
		t.Errorf("%d items, the last of them %+v", len(found), found[len(found)-1])
	}
	if id, err := trash.ResolveItem(t.Context(), h.store, fmt.Sprint(last)[24:]); err != nil || id != last {
		t.Errorf("%s, %v", id, err)
	}
	kit.Must[trash.RestoreResult](t)(trash.Restore(t.Context(), h.store, last))
	moved, purged := kit.Collect(t, h.store, trash.CollectOptions{})
	if left := kit.TrashOf(t, h.store, "version"); len(moved) != 0 || len(purged) < many || len(left) > 0 {
		t.Errorf("%d moved, %d purged, %d left", len(moved), len(purged), len(left))
	}
}
