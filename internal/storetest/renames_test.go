package storetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRenamesCost: a rename is one fdatasync. The folder of the branch folders is synced when metadata has no room for
// another rename, or when a former name is used again.
func TestRenamesCost(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithFoldBytes(-1))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 3)
	name, count := engine.MainBranch, 0
	rename := func(to string) (folders int) {
		t.Helper()
		calls := k.during(func() { kit.Check(t, c.Rename(ctx, name, to)) })
		name = to
		for _, s := range syncs(calls) {
			if strings.HasPrefix(s, string(crashfs.KindDatasync)) {
				count++
			} else {
				folders++
			}
		}
		return folders
	}
	for i := range ctxfolder.MaxRenaming + 5 {
		if folders, full := rename(fmt.Sprint(i)), i == ctxfolder.MaxRenaming; folders > 0 != full {
			t.Errorf("rename %d synced folders %d times", i, folders)
		}
	}
	if folders := rename("3"); folders != 0 {
		t.Errorf("a former name whose rename is durable: %d syncs of folders", folders)
	}
	if folders := rename(fmt.Sprint(ctxfolder.MaxRenaming + 2)); folders != 1 {
		t.Errorf("a former name: %d syncs of folders", folders)
	}
	if want := ctxfolder.MaxRenaming + 7; count != want {
		t.Errorf("%d renames had %d fdatasyncs", want, count)
	}
	again := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
	if ms := kit.Load(t, again.Active()); len(ms) != 3 {
		t.Errorf("%d messages", len(ms))
	}
	kit.Check(t, again.Close(), c.Close())
}

// TestPowerCutWhileRenaming cuts the power at each operation of a chain of renames, of renames beside each other, and of
// changes that use a former name again. Every message stays on its branch, whichever renames survive.
func TestPowerCutWhileRenaming(t *testing.T) {
	t.Parallel()
	n := 0
	add := func(branch string) kit.Step {
		n++
		m := kit.TranscriptMessage{ID: kit.TestID(n), Body: fmt.Sprintf(`{"n":%d}`, n)}
		return kit.Step{
			Name: "append to " + branch,
			Do: func(w *kit.World) error {
				_, err := w.Branch(branch).Append(w.Ctx, engine.Draft{ID: m.ID, Body: []byte(m.Body)})
				return err
			},
			Then: func(s kit.Transcript) { s[branch] = append(slices.Clip(s[branch]), m) },
		}
	}
	rename := func(from, to string) kit.Step {
		return kit.Step{
			Name: "rename " + from + " to " + to,
			Do:   func(w *kit.World) error { return w.C.Rename(w.Ctx, from, to) },
			Then: func(s kit.Transcript) { s[to] = s[from]; delete(s, from) },
		}
	}
	begin := func(name string) kit.Step {
		return kit.Step{
			Name: "branch " + name,
			Do:   func(w *kit.World) error { _, err := w.C.NewBranch(w.Ctx, name); return err },
			Then: func(s kit.Transcript) { s[name] = nil },
		}
	}
	steps := []kit.Step{
		{Name: "create", Then: func(s kit.Transcript) { s["main"] = nil }, Do: func(w *kit.World) (err error) {
			w.C, err = w.Store.Create(w.Ctx, engine.Metadata{ID: w.ID})
			return err
		}},
		add("main"), begin("a"), begin("x"), add("a"), add("x"),
		rename("a", "b"), rename("x", "y"), rename("b", "c"), add("c"), rename("c", "d"), add("y"),
		begin("b"), add("b"), // the folder of an earlier name
		rename("d", "e"), rename("e", "d"), add("d"), // there and back
		{Name: "fold", Do: func(w *kit.World) error { return w.C.Fold(w.Ctx) }, Then: func(kit.Transcript) {}},
		rename("y", "z"), add("z"),
	}
	for i := range ctxfolder.MaxRenaming {
		steps = append(steps, rename([]string{"z", "y"}[i%2], []string{"y", "z"}[i%2]))
	}
	for i := range ctxfolder.MaxRenaming + 2 {
		steps = append(steps, rename(strings.Repeat("d", i+1), strings.Repeat("d", i+2)))
	}
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		before, after, cut := kit.RunSteps(t, disk, k, steps, engine.InOrder())
		if cut == nil {
			break
		}
		for seed := range 2 + *kit.PowercutSeeds {
			how := crashfs.Random(uint64(k*1000 + seed))
			switch seed {
			case 0:
				how = crashfs.Lose
			case 1:
				how = crashfs.Keep
			}
			if err := kit.Verify(disk.Crash(how), before, after, cut, seed%3 == 0); err != nil {
				t.Fatalf("power cut at operation %d (%s), seed %d: %v", k, kit.LastOp(disk), seed, err)
			}
		}
	}
}

// TestRenameOfANewBranch: a commit makes a branch with a former name and renames it again. Its folder never had that
// name.
func TestRenameOfANewBranch(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t)
	kit.Fill(t, c.Active(), 3)
	kit.Check(t, c.Rename(ctx, "main", "first"))
	_, err := c.Commit(ctx, func(tx *engine.Tx) error {
		_ = tx.Fork("main", "first", 2)
		_ = tx.Append("main", []engine.Draft{{Body: []byte(`{"of":"main"}`)}})
		return tx.Rename("main", "second")
	})
	kit.Check(t, err)
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	for _, name := range []string{"first", "second"} {
		if ms := kit.Load(t, kit.Must[*engine.Branch](t)(again.Branch(name))); len(ms) != 3 {
			t.Errorf("%s shows %d messages", name, len(ms))
		}
	}
	kit.Check(t, again.Close())
}
