package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFullCopyOnWrite: on a full file system that writes nothing in place, an append fails, whoever tries; what was
// acknowledged is read as it was, a check finds no error, and nobody makes the index anew. With room again it goes on,
// and a power cut right behind that takes nothing.
func TestFullCopyOnWrite(t *testing.T) {
	for _, written := range []int{0, 1, 100, 170, 400} {
		for _, truncates := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, truncates %v", written, truncates), func(t *testing.T) { fullCopyOnWrite(t, written, truncates) })
		}
	}
}

func fullCopyOnWrite(t *testing.T, written int, truncates bool) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	var a acknowledged
	kit.Check(t, a.append(c.Active(), 200, 3), c.Seal(ctx), a.append(c.Active(), 200, 3))
	full := func(o crashfs.Op) error {
		switch o.Kind {
		case crashfs.KindWrite:
			if written > 0 && o.Size > int64(written) {
				return &crashfs.ShortWrite{N: written, Err: syscall.ENOSPC}
			}
			return syscall.ENOSPC
		case crashfs.KindTruncate:
			if !truncates {
				return syscall.ENOSPC
			}
		case crashfs.KindCreate, crashfs.KindMkdir, crashfs.KindRename:
			return syscall.ENOSPC
		}
		return nil
	}
	disk.Fail(full)
	for range 3 {
		if err := a.append(c.Active(), 200, 1); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("on a full disk: %v", err)
		}
		other := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		again := kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
		if err := a.append(again.Active(), 200, 1); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("another process on a full disk: %v", err)
		}
		_ = again.Close()
		for f, err := range checking.Check(ctx, other, nil, checking.Options{ReadData: true}) {
			if err != nil || f.Severity == integrity.SeverityError {
				t.Errorf("check: %+v, %v", f, err)
			}
		}
		a.shown(t, other, c.ID())
		kit.Check(t, other.Close())
	}
	disk.Fail(nil)
	// What failed may be there, whole: then the positions behind it are others.
	before := kit.Must[int64](t)(c.Active().Len(ctx))
	if err := a.append(c.Active(), 200, 1); before == int64(len(a.ids)) && err != nil {
		t.Fatalf("with room again: %v", err)
	}
	other := kit.Must[*engine.Store](t)(kit.OpenCrash(disk.Crash(crashfs.Lose)))
	defer other.Close()
	a.shown(t, other, c.ID())
}
