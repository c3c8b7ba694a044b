package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestRestoreOldGaps: where an item of the format before lacks messages, the restored line has messages that say so.
// The others are in their places.
func TestRestoreOldGaps(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, want := kit.NewOrphan(t, s)
	kit.Check(t, c.Fold(ctx), c.Log.Exclusively(ctx, c.Log.Retire), c.Close())
	files, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "messages", "branch-gone", "*.json"))
	slices.Sort(files)
	kit.Check(t, os.WriteFile(files[1], []byte("harmed"), 0o600), os.Remove(files[4]))
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	moved := kit.CollectOld(t, c)
	kit.Check(t, c.Close())
	if found := kit.TrashOf(t, s, "line"); len(found) != 1 || found[0].Item != moved[0].Item {
		t.Fatalf("%+v", found)
	}
	{
		r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, moved[0].Item))
		if r.Messages != 3 || r.Missing != 2 {
			t.Errorf("%+v", r)
		}
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		got := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch("gone")))
		if len(got) != len(want) {
			t.Fatalf("%d messages, wanted %d", len(got), len(want))
		}
		for i, m := range got {
			missing := i == 2 || i == 5
			if m.Position != int64(i) || m.Unavailable != nil || missing != strings.HasPrefix(string(m.Stored), `{"unavailable":`) ||
				!missing && m.ID.String()+string(m.Stored) != want[i] {
				t.Errorf("message %d: %s at %d, %v: %s", i, m.ID, m.Position, m.Unavailable, m.Stored)
			}
		}
		kit.Check(t, c.Close())
	}
}

// TestRestoreOldAgain: a restore that is repeated skips what the line has. An item that lacks a message takes nothing
// away that came back from another one.
func TestRestoreOldAgain(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, want := kit.NewOrphan(t, s)
	moved := kit.CollectOld(t, c)
	other := uuid.Must(uuid.NewV7())
	path := filepath.Join(dir, c.ID().String(), "trash", other.String())
	kit.Check(t, os.CopyFS(path, os.DirFS(filepath.Join(dir, moved[0].Path))))
	b, err := os.ReadFile(path + "/messages-1.jsonl")
	kit.Check(t, err)
	lines := strings.SplitAfter(string(b), "\n")
	lines[1] = `{"ctxdir":"gap/1","position":2,"id":"` + want[2][:36] + `","reason":"x"}` + "\n"
	kit.Check(t, os.WriteFile(path+"/messages-1.jsonl", []byte(strings.Join(lines, "")), 0o600))
	for _, item := range []uuid.UUID{moved[0].Item, other} {
		kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, item))
		kit.Check(t, c.Refresh(ctx))
		if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch("gone"))); !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	}
	kit.Check(t, c.Close())
}

// TestRestoreOldWithABrokenIndex: a message whose file name another line took meanwhile has one file, of another name,
// and its envelope says which, also when the index turns out to be broken during the restore.
func TestRestoreOldWithABrokenIndex(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 1)
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"old":1}`)})
	want := kit.Bodies(t, c.Active())
	kit.Check(t, c.Active().Rewind(ctx, 1))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"new":1}`)})
	main := kit.Bodies(t, c.Active())
	moved := kit.CollectOld(t, c)
	kit.Check(t, c.Close())
	folder := filepath.Join(dir, c.ID().String())
	kit.Check(t, os.RemoveAll(filepath.Join(folder, "index")))
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, moved[0].Item))
	for _, lost := range []string{"nothing", "index.json", "index"} {
		kit.Check(t, os.RemoveAll(filepath.Join(folder, lost)))
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		kit.Check(t, c.Fold(ctx))
		if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch(r.Branch))); !slices.Equal(got, want) {
			t.Errorf("without %s: %v, wanted %v", lost, got, want)
		}
		if got := kit.Bodies(t, c.Active()); !slices.Equal(got, main) {
			t.Errorf("without %s: main changed", lost)
		}
		if files, _ := filepath.Glob(filepath.Join(folder, "messages", "*", "*.json")); len(files) != 3 {
			t.Errorf("without %s: %d message files, wanted 3: %v", lost, len(files), files)
		}
		kit.Check(t, c.Close())
	}
}

// TestRestoreOldInOrder: the line that another one begins on has to be there first, and the error names its item.
func TestRestoreOldInOrder(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 2)
	a := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "a", 2))
	kit.Fill(t, a, 3)
	b := kit.Must[*engine.Branch](t)(a.Fork(ctx, "b", 4))
	kit.Fill(t, b, 1)
	kit.Check(t, c.Remove(ctx, "a"), c.Remove(ctx, "b"))
	moved := kit.CollectOld(t, c)
	i := slices.IndexFunc(moved, func(x engine.TrashItem) bool { return x.Name == "a" })
	if len(moved) != 2 || i < 0 {
		t.Fatalf("%+v", moved)
	}
	_, err := trash.Restore(ctx, s, moved[1-i].Item)
	if !errors.Is(err, engine.ErrPosition) || !strings.Contains(err.Error(), moved[i].Item.String()) {
		t.Errorf("restoring b before a: %v", err)
	}
	for _, x := range []engine.TrashItem{moved[i], moved[1-i]} {
		kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, x.Item))
	}
	kit.Check(t, c.Refresh(ctx))
	if got := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch("b"))); len(got) != 5 {
		t.Errorf("%d messages", len(got))
	}
	kit.Check(t, c.Close())
}

// TestNoRestore: an item without a place to return to stays, and so does one that is not what it says.
func TestNoRestore(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, _ := kit.NewOrphan(t, s)
	moved := kit.CollectOld(t, c)
	path := filepath.Join(dir, moved[0].Path)
	good, err := os.ReadFile(path + "/messages-1.jsonl")
	kit.Check(t, err)
	info, err := os.ReadFile(path + "/item.json")
	kit.Check(t, err)
	for name, x := range map[string]struct{ file, was, is string }{
		"another line":   {"messages-1.jsonl", `"line":"`, `"line":"00000000-0000-4000-8000-000000000000","x":"`},
		"no message":     {"messages-1.jsonl", `"message":`, `"message":x`},
		"a wrong place":  {"messages-1.jsonl", `"position":1`, `"position":7`},
		"one is missing": {"item.json", `"to":6`, `"to":7`},
		"too many":       {"item.json", `"to":6`, `"to":5`},
		"leads outside":  {"item.json", `"branch-gone"`, `"../../branch-gone"`},
		"nonsense":       {"item.json", `"from":1`, `"from":-1`},
		"no place":       {"item.json", `"kind":"line"`, `"kind":"tail"`},
		"not its trash":  {"item.json", `"kind":"line"`, `"kind":"context"`},
		"another format": {"item.json", `trash/1`, `trash/2`},
	} {
		from := map[string][]byte{"messages-1.jsonl": good, "item.json": info}[x.file]
		harmed := strings.Replace(string(from), x.was, x.is, 1)
		if harmed == string(from) {
			t.Fatalf("%s: %s has no %s", name, from, x.was)
		}
		kit.Check(t, os.WriteFile(filepath.Join(path, x.file), []byte(harmed), 0o600))
		if _, err := trash.Restore(ctx, s, moved[0].Item); !errors.Is(err, engine.ErrInvalid) && !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		kit.Check(t, os.WriteFile(filepath.Join(path, x.file), from, 0o600), c.Refresh(ctx))
		if _, err := c.Branch("gone"); err == nil {
			t.Fatalf("%s: the branch came back", name)
		}
	}
	kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, moved[0].Item))
	if _, err := trash.Restore(ctx, s, uuid.New()); !errors.Is(err, engine.ErrNotExist) {
		t.Error(err)
	}
	kit.Check(t, c.Close())
}
