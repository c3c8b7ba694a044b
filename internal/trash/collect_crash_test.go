package trash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// collectingWorkload takes branches away, collects, brings them back and purges. removed are the views that branches
// lost: each must be shown by a branch, or come back from trash.
func collectingWorkload(removed *[][]kit.TranscriptMessage) []kit.Step {
	n := 0
	add := func(branch string, sizes ...int) kit.Step {
		var ms []kit.TranscriptMessage
		for _, size := range sizes {
			n++
			ms = append(ms, kit.TranscriptMessage{ID: kit.TestID(n), Body: fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("y", size))})
		}
		return kit.Step{
			Name: "append to " + branch, Partly: branch,
			Then: func(s kit.Transcript) { s[branch] = append(s[branch], ms...) },
			Do: func(w *kit.World) error {
				var drafts []engine.Draft
				for _, m := range ms {
					drafts = append(drafts, engine.Draft{ID: m.ID, Body: []byte(m.Body)})
				}
				_, err := w.Branch(branch).AppendBatch(w.Ctx, drafts)
				return err
			},
		}
	}
	seal := kit.Step{Name: "seal", Do: func(w *kit.World) error { return w.C.Seal(w.Ctx) }, Then: func(kit.Transcript) {}}
	collect := kit.Step{Name: "collect", Then: func(kit.Transcript) {}, Do: func(w *kit.World) error {
		err := kit.CollectAll(w.Store, trash.DefaultGrace)
		if err == nil {
			err = w.C.Refresh(w.Ctx)
		}
		return err
	}}
	remove := func(name string) kit.Step {
		return kit.Step{Name: "remove " + name, Do: func(w *kit.World) error { return w.C.Remove(w.Ctx, name) }, Then: func(s kit.Transcript) {
			*removed = append(*removed, s[name])
			delete(s, name)
		}}
	}
	restore := func(name, as string) kit.Step {
		var view []kit.TranscriptMessage
		return kit.Step{Name: "restore " + name, Do: func(w *kit.World) error {
			t, err := kit.FindItem(w.Store, name)
			if err != nil {
				return err
			}
			r, err := trash.Restore(w.Ctx, w.Store, t.Item)
			if err == nil && r.Branch != as {
				err = fmt.Errorf("it is branch %q", r.Branch)
			}
			if err == nil {
				err = w.C.Refresh(w.Ctx)
			}
			return err
		}, Then: func(s kit.Transcript) {
			if view == nil {
				view = (*removed)[len(*removed)-1]
			}
			s[as] = view
		}}
	}
	purge := kit.Step{Name: "purge", Then: func(kit.Transcript) { *removed = nil }, Do: func(w *kit.World) error {
		for _, err := range trash.Purge(w.Ctx, w.Store, nil, 0, false) {
			if err != nil {
				return err
			}
		}
		return nil
	}}
	return []kit.Step{
		{Name: "create", Then: func(s kit.Transcript) { s["main"] = nil }, Do: func(w *kit.World) (err error) {
			w.C, err = w.Store.Create(w.Ctx, engine.Metadata{ID: w.ID})
			return err
		}},
		add("main", 10, 10, 10, 10),
		{Name: "fork", Then: func(s kit.Transcript) { s["alt"] = slices.Clone(s["main"][:2]) }, Do: func(w *kit.World) error {
			_, err := w.Branch("main").Fork(w.Ctx, "alt", 2)
			return err
		}},
		add("alt", 10, 3000), seal, add("alt", 70_000, 10), remove("alt"), collect, add("main", 10), seal, restore("alt", "alt"),
		add("alt", 10), seal,
		{Name: "rewind", Do: func(w *kit.World) error { return w.Branch("main").Rewind(w.Ctx, 3) }, Then: func(s kit.Transcript) {
			*removed = append(*removed, s["main"])
			s["main"] = s["main"][:3:3]
		}},
		collect, add("main", 10), restore("main", "main-2"), seal, remove("alt"), remove("main-2"), collect, seal, add("main", 10),
		purge, collect, seal,
	}
}

// TestPowerCutWhileCollecting cuts the power at each operation of the workload. Branches show what they must; and what
// they lost is still there, in trash or not yet: collected once more and restored, a branch shows it.
func TestPowerCutWhileCollecting(t *testing.T) {
	t.Parallel()
	states := 0
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		var removed [][]kit.TranscriptMessage
		before, after, cut := kit.RunSteps(t, disk, k, collectingWorkload(&removed))
		name := "the end"
		if cut != nil {
			name = cut.Name
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range *kit.PowercutSeeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			err := kit.Verify(disk.Crash(choice), before, after, cut, states%3 == 0)
			if err == nil && len(before) > 0 {
				err = nothingLost(disk.Crash(choice), removed)
			}
			if err != nil {
				t.Fatalf("power cut at operation %d (%s, in %q), disk %s: %v\n%s", k, kit.LastOp(disk), name, choice, err, disk.Crash(choice).Dump())
			}
		}
		if cut == nil {
			break
		}
	}
	t.Logf("%d disk states", states)
}

// nothingLost collects once more, brings back everything, and looks for the views.
func nothingLost(disk *crashfs.FS, removed [][]kit.TranscriptMessage) error {
	ctx := context.Background()
	id := kit.TestID(60000)
	before, err := kit.Read(disk, id)
	if err != nil {
		return err
	}
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := kit.CollectAll(s, trash.DefaultGrace); err != nil {
		return fmt.Errorf("collecting: %w", err)
	}
	if got, err := kit.Read(disk, id); err != nil || !kit.Equal(got, before) {
		return fmt.Errorf("collecting changed what branches show: %w", err)
	}
	for more := true; more; {
		more = false
		var left []engine.TrashItem
		for t, err := range trash.List(ctx, s) {
			if err != nil {
				return err
			}
			if t.Kind == "line" {
				left = append(left, t)
			}
		}
		for _, t := range left {
			if _, err := trash.Restore(ctx, s, t.Item); err == nil {
				more = true
			} else if !errors.Is(err, engine.ErrPosition) {
				return fmt.Errorf("restoring %+v: %w", t, err)
			}
		}
		if !more && len(left) > 0 {
			return fmt.Errorf("%+v cannot be restored", left)
		}
	}
	got, err := kit.Read(disk.Crash(crashfs.Lose), id)
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
