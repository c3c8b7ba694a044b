package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// failAt lets one operation of a disk fail, and returns what that was, and how many there were.
func failAt(disk *crashfs.FS, k int) func() (failed string, ops int) {
	failed, ops := "", 0
	disk.Fail(kit.Serialise(func(o crashfs.Op) error {
		if ops++; ops == k {
			failed = o.String()
			return errors.New("input/output error")
		}
		return nil
	}))
	return func() (string, int) {
		disk.Fail(nil)
		return failed, ops
	}
}

// anHourAgo is a disk on which what happens bears a time an hour ago, as when a follower comes late.
func anHourAgo() *crashfs.FS {
	disk := crashfs.New()
	disk.SetClock(func() time.Time { return time.Now().Add(-time.Hour) })
	return disk
}

// TestWatchFault: one look of a follower fails, whichever it is, while there are commits to tell. They are told
// afterwards.
func TestWatchFault(t *testing.T) {
	ctx := context.Background()
	const messages = 3
	for k := 1; ; k++ {
		disk := anHourAgo()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
		kit.Fill(t, c.Active(), messages)
		works := failAt(disk, k)
		told := 0
		tell := func() {
			for e, err := range w.Pending(ctx) {
				switch {
				case err == nil && e.Kind == follow.MessageAppended:
					told++
				case err == nil && e.Kind == follow.Resync:
					told = messages
				}
			}
		}
		tell()
		failed, ops := works()
		tell()
		if told != messages {
			t.Errorf("operation %d (%s) failed: %d messages told, want %d", k, failed, told, messages)
		}
		kit.Check(t, w.Close(), c.Close(), s.Close())
		if ops < k {
			break
		}
	}
}

// TestWatchBegin: a watcher of a store tells what happens from when it was made on, also where its first look at a
// context fails.
func TestWatchBegin(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk := anHourAgo()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 3)
		works := failAt(disk, k)
		w, err := follow.Watch(ctx, s)
		failed, ops := works()
		if err == nil {
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":3}`)})
			var told []follow.EventKind
			for e, err := range w.Pending(ctx) {
				kit.Check(t, err)
				told = append(told, e.Kind)
			}
			if !slices.Equal(told, []follow.EventKind{follow.MessageAppended}) && !slices.Equal(told, []follow.EventKind{follow.Resync}) {
				t.Errorf("operation %d (%s) failed: %q told", k, failed, told)
			}
			kit.Check(t, w.Close())
		}
		kit.Check(t, c.Close(), s.Close())
		if ops < k {
			break
		}
	}
}

// TestWatchOpensFew: also where each of many contexts has much to tell.
func TestWatchOpensFew(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithSealBytes(-1))
	var contexts []*engine.Context
	for range 2 * follow.MaxAwake {
		contexts = append(contexts, kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{})))
	}
	w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
	defer w.Close()
	var drafts []engine.Draft
	for i := range follow.TurnEvents + 10 {
		drafts = append(drafts, engine.Draft{Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	for _, c := range contexts {
		kit.Must[[]engine.BatchResult](t)(c.Active().AppendBatch(ctx, drafts))
		kit.Check(t, c.Close())
	}
	most, told := 0, 0
	for _, err := range w.Pending(ctx) {
		kit.Check(t, err)
		if told++; told%follow.TurnEvents == 0 {
			most = max(most, w.Open())
		}
	}
	if most > follow.MaxAwake+1 || told != len(contexts)*len(drafts) {
		t.Errorf("%d contexts were open at once, want %d; %d messages told", most, follow.MaxAwake, told)
	}
}
