package index

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// A seal renames the segment, and then its process is killed before it syncs the folder, or that sync fails. Another process
// seals next: it removes the log. Then the power goes.
func TestLogStaysUntilSegmentIsDurable(t *testing.T) {
	for _, killed := range []bool{true, false} {
		b := newBench(t, 11)
		b.ix.opts.Full = 1 << 20
		for range 6 {
			must(t, b.commit())
		}
		must(t, b.ix.Prepare())
		must(t, b.ix.Rotate())
		must(t, b.disk.SyncDir("."))
		must(t, b.ix.Prepare())
		broken := errors.New("broken")
		b.disk.Fail(func(op crashfs.Op) error {
			if op.Kind == crashfs.KindSyncDir && strings.HasSuffix(op.Path, "segments") {
				if killed {
					runtime.Goexit()
				}
				return broken
			}
			return nil
		})
		ended := make(chan error)
		go func() {
			defer close(ended)
			if err := b.ix.Seal(archive.Options{}); err != nil {
				ended <- err
			}
		}()
		t.Log("the first seal:", <-ended)
		b.disk.Fail(nil)
		n := len(b.disk.Ops())
		ix := b.again(b.disk)
		ix.opts.Full = 1 << 20
		must(t, ix.Prepare())
		must(t, sealAll(ix))
		must(t, ix.Merge(archive.Options{}))
		ix.Close()
		must(t, b.disk.SyncDir("."))
		for _, op := range b.disk.Ops()[n:] {
			t.Log(op)
		}
		for _, c := range choices(60) {
			disk := b.disk.Crash(c)
			left := Open(folderOf(t, disk), b.options())
			err := left.Refresh()
			if err == nil {
				err = difference(left, b.model, b.r)
			}
			left.Close()
			if err != nil {
				t.Errorf("killed %v, %v: %v", killed, c, err)
				break
			}
		}
	}
}
