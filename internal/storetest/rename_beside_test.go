package storetest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestReadingBesideRename: at each operation of a process that seals or archives another one renames a branch, and at
// each call of the rename a reader that opened the context before reads the branch's messages by id.
func TestReadingBesideRename(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, act := range map[string]func(*engine.Context) error{
		"seal":    func(c *engine.Context) error { return c.Seal(ctx) },
		"archive": func(c *engine.Context) error { _, err := kit.Archive(ctx, c, archiving.Options{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads, k := 0, 1
			for more := true; more && !t.Failed(); k++ {
				var n int
				n, more = readBesideRename(t, k, act)
				reads += n
			}
			if reads < 50 {
				t.Errorf("%d reads at %d operations", reads, k)
			}
		})
	}
}

// readBesideRename renames at the k-th operation of act. It returns how often the branch was read, and false for more
// if act has no such operation.
func readBesideRename(t *testing.T, k int, act func(*engine.Context) error) (reads int, more bool) {
	t.Helper()
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	alt := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
	for n := 1; n <= 3; n++ {
		kit.Append(t, alt, engine.Draft{ID: kit.TestID(n), Body: []byte(besideBody(n, 0))})
		kit.Check(t, c.Seal(ctx))
	}
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(4), Body: []byte(besideBody(4, 0))})
	others := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
	defer others.Close()
	theirs := kit.Must[*engine.Context](t)(others.Context(ctx, c.ID()))
	defer theirs.Close()
	const readers = 50 // more than a rename has calls
	var fresh []*engine.Branch
	for range readers {
		r := kit.Must[*engine.Context](t)(others.Context(ctx, c.ID()))
		defer r.Close()
		fresh = append(fresh, kit.Must[*engine.Branch](t)(r.Branch("alt")))
	}
	first := len(disk.Ops())
	var turn sync.Mutex // held while the reader reads, and its own calls pass
	disk.Fail(func(o crashfs.Op) error {
		if !turn.TryLock() {
			return nil
		}
		defer turn.Unlock()
		switch {
		case !more && o.Index == first+k:
			more = true
			ok, err := theirs.Dir.Lock.TryAcquire()
			kit.Check(t, err)
			if !ok {
				fresh = nil // a rename would wait
				return nil
			}
			kit.Check(t, theirs.Dir.Lock.Release())
			turn.Unlock()
			kit.Check(t, theirs.Rename(ctx, "alt", "beta"))
			turn.Lock()
			fresh = nil
		case more && len(fresh) > 0:
			for n := 1; n <= 3; n++ {
				if m, err := fresh[0].Message(ctx, kit.TestID(n)); err != nil || m.Unavailable != nil || kit.BodyOf(m) != besideBody(n, 0) {
					t.Errorf("renamed at operation %d, before %v: message %d: %+v, %v", k, o, n, m, err)
				}
				reads++
			}
			fresh = fresh[1:]
		}
		return nil
	})
	err := act(c)
	disk.Fail(nil)
	turn.Lock() // a call in the background may be reading
	defer turn.Unlock()
	if err != nil {
		t.Fatal(fmt.Errorf("renamed at operation %d: %w", k, err))
	}
	return reads, more
}
