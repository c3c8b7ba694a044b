package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// failAt lets one operation of a disk fail, and returns what that was, and how many there were.
func failAt(disk *crashfs.FS, k int) func() (failed string, ops int) {
	failed, ops := "", 0
	disk.Fail(inTurn(func(o crashfs.Op) error {
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

// TestWatchFault: one look of a follower fails, whichever it is, while there are commits to tell. They are told afterwards.
func TestWatchFault(t *testing.T) {
	ctx := context.Background()
	const messages = 3
	for k := 1; ; k++ {
		disk := anHourAgo()
		s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
		c := must[*Context](t)(s.Create(ctx, Metadata{}))
		w := must[*Watcher](t)(s.Watch(ctx))
		fill(t, c.Active(), messages)
		works := failAt(disk, k)
		told := 0
		tell := func() {
			for e, err := range w.Pending(ctx) {
				switch {
				case err == nil && e.Kind == MessageAppended:
					told++
				case err == nil && e.Kind == Resync:
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
		check(t, w.Close(), c.Close(), s.Close())
		if ops < k {
			break
		}
	}
}

// TestWatchBegin: a watcher of a store tells what happens from when it was made on, also where its first look at a context fails.
func TestWatchBegin(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk := anHourAgo()
		s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
		c := must[*Context](t)(s.Create(ctx, Metadata{}))
		fill(t, c.Active(), 3)
		works := failAt(disk, k)
		w, err := s.Watch(ctx)
		failed, ops := works()
		if err == nil {
			must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"n":3}`)}))
			var told []EventKind
			for e, err := range w.Pending(ctx) {
				check(t, err)
				told = append(told, e.Kind)
			}
			if !slices.Equal(told, []EventKind{MessageAppended}) && !slices.Equal(told, []EventKind{Resync}) {
				t.Errorf("operation %d (%s) failed: %q told", k, failed, told)
			}
			check(t, w.Close())
		}
		check(t, c.Close(), s.Close())
		if ops < k {
			break
		}
	}
}

// TestWatchOpensFew: also where each of many contexts has much to tell.
func TestWatchOpensFew(t *testing.T) {
	ctx := context.Background()
	s, _ := newStore(t, WithFoldBytes(-1))
	var contexts []*Context
	for range 2 * mostAwake {
		contexts = append(contexts, must[*Context](t)(s.Create(ctx, Metadata{})))
	}
	w := must[*Watcher](t)(s.Watch(ctx))
	defer w.Close()
	var drafts []Draft
	for i := range turn + 10 {
		drafts = append(drafts, Draft{Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	for _, c := range contexts {
		must[[]Result](t)(c.Active().AppendBatch(ctx, drafts))
		check(t, c.Close())
	}
	most, told := 0, 0
	for _, err := range w.Pending(ctx) {
		check(t, err)
		if told++; told%turn == 0 {
			awake := 0
			for _, f := range w.followers {
				if f.c != nil {
					awake++
				}
			}
			most = max(most, awake)
		}
	}
	if most > mostAwake+1 || told != len(contexts)*len(drafts) {
		t.Errorf("%d contexts were open at once, want %d; %d messages told", most, mostAwake, told)
	}
}
