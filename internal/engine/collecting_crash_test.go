package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// collectingWorkload takes branches away, collects, brings them back and purges. removed are the views that branches lost: each
// must be shown by a branch, or come back from trash.
func collectingWorkload(removed *[][]saidMessage) []step {
	n := 0
	add := func(branch string, sizes ...int) step {
		var ms []saidMessage
		for _, size := range sizes {
			n++
			ms = append(ms, saidMessage{testID(n), fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("y", size))})
		}
		return step{
			name: "append to " + branch, partly: branch,
			then: func(s said) { s[branch] = append(s[branch], ms...) },
			do: func(w *world) error {
				var drafts []Draft
				for _, m := range ms {
					drafts = append(drafts, Draft{ID: m.id, Body: []byte(m.body)})
				}
				_, err := w.branch(branch).AppendBatch(w.ctx, drafts)
				return err
			},
		}
	}
	fold := step{name: "fold", do: func(w *world) error { return w.c.Fold(w.ctx) }, then: func(said) {}}
	lazily := step{name: "fold lazily", do: func(w *world) error { return w.c.log.Fold(w.ctx, false) }, then: func(said) {}}
	collect := step{name: "collect", then: func(said) {}, do: func(w *world) error {
		err := collectAll(w.store, DefaultGrace)
		if err == nil {
			err = w.c.Refresh(w.ctx)
		}
		return err
	}}
	remove := func(name string) step {
		return step{name: "remove " + name, do: func(w *world) error { return w.c.Remove(w.ctx, name) }, then: func(s said) {
			*removed = append(*removed, s[name])
			delete(s, name)
		}}
	}
	restore := func(name, as string) step {
		var view []saidMessage
		return step{name: "restore " + name, do: func(w *world) error {
			t, err := findTrashed(w.store, name)
			if err != nil {
				return err
			}
			r, err := w.store.Restore(w.ctx, t.Item)
			if err == nil && r.Branch != as {
				err = fmt.Errorf("it is branch %q", r.Branch)
			}
			if err == nil {
				err = w.c.Refresh(w.ctx)
			}
			return err
		}, then: func(s said) {
			if view == nil {
				view = (*removed)[len(*removed)-1]
			}
			s[as] = view
		}}
	}
	purge := step{name: "purge", then: func(said) { *removed = nil }, do: func(w *world) error {
		for _, err := range w.store.Purge(w.ctx, nil, 0, false) {
			if err != nil {
				return err
			}
		}
		return nil
	}}
	return []step{
		{name: "create", then: func(s said) { s["main"] = nil }, do: func(w *world) (err error) {
			w.c, err = w.store.Create(w.ctx, Metadata{ID: w.id})
			return err
		}},
		add("main", 10, 10, 10, 10),
		{name: "fork", then: func(s said) { s["alt"] = slices.Clone(s["main"][:2]) }, do: func(w *world) error {
			_, err := w.branch("main").Fork(w.ctx, "alt", 2)
			return err
		}},
		add("alt", 10, 3000), fold, add("alt", 70_000, 10), remove("alt"), collect, add("main", 10), lazily, restore("alt", "alt"),
		add("alt", 10), fold,
		{name: "rewind", do: func(w *world) error { return w.branch("main").Rewind(w.ctx, 3) }, then: func(s said) {
			*removed = append(*removed, s["main"])
			s["main"] = s["main"][:3:3]
		}},
		collect, add("main", 10), restore("main", "main-2"), fold, remove("alt"), remove("main-2"), collect, fold, add("main", 10),
		purge, collect, fold,
	}
}

func collectAll(s *Store, grace time.Duration) error {
	var failed []error
	for _, err := range s.Collect(context.Background(), Collecting{Grace: grace}) {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func findTrashed(s *Store, name string) (Trashed, error) {
	for t, err := range s.Trash(context.Background()) {
		if err != nil || t.Kind == "line" && t.Name == name {
			return t, err
		}
	}
	return Trashed{}, fmt.Errorf("nothing of %q is in trash", name)
}

// TestPowerCutWhileCollecting cuts the power at each operation of the workload. Branches show what they must; and what they
// lost is still there, in trash or not yet: collected once more and restored, a branch shows it.
func TestPowerCutWhileCollecting(t *testing.T) {
	t.Parallel()
	states := 0
	for k := 1; ; k += stride() {
		disk := crashfs.New()
		var removed [][]saidMessage
		before, after, cut := runSteps(t, disk, k, collectingWorkload(&removed))
		name := "the end"
		if cut != nil {
			name = cut.name
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range *powercutSeeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			err := verify(disk.Crash(choice), before, after, cut, states%3 == 0)
			if err == nil && len(before) > 0 {
				err = nothingLost(disk.Crash(choice), removed)
			}
			if err != nil {
				t.Fatalf("power cut at operation %d (%s, in %q), disk %s: %v\n%s", k, lastOp(disk), name, choice, err, disk.Crash(choice).Dump())
			}
		}
		if cut == nil {
			break
		}
	}
	t.Logf("%d disk states", states)
}

// nothingLost collects once more, brings back everything, and looks for the views.
func nothingLost(disk *crashfs.FS, removed [][]saidMessage) error {
	ctx := context.Background()
	id := testID(60000)
	before, err := read(disk, id)
	if err != nil {
		return err
	}
	s, err := openCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := collectAll(s, DefaultGrace); err != nil {
		return fmt.Errorf("collecting: %w", err)
	}
	if got, err := read(disk, id); err != nil || !equal(got, before) {
		return fmt.Errorf("collecting changed what branches show: %w", err)
	}
	for more := true; more; {
		more = false
		var left []Trashed
		for t, err := range s.Trash(ctx) {
			if err != nil {
				return err
			}
			if t.Kind == "line" {
				left = append(left, t)
			}
		}
		for _, t := range left {
			if _, err := s.Restore(ctx, t.Item); err == nil {
				more = true
			} else if !errors.Is(err, ErrPosition) {
				return fmt.Errorf("restoring %+v: %w", t, err)
			}
		}
		if !more && len(left) > 0 {
			return fmt.Errorf("%+v cannot be restored", left)
		}
	}
	got, err := read(disk.Crash(crashfs.Lose), id)
	if err != nil {
		return fmt.Errorf("after everything was restored: %w", err)
	}
	for _, want := range removed {
		found := false
		for _, view := range got {
			found = found || len(view) >= len(want) && slices.Equal(view[:len(want)], want)
		}
		if !found {
			return fmt.Errorf("%d messages of a removed branch did not come back", len(want))
		}
	}
	for name, want := range before {
		if view := got[name]; len(view) < len(want) || !slices.Equal(view[:len(want)], want) {
			return fmt.Errorf("restoring changed what branch %q shows", name)
		}
	}
	return nil
}
