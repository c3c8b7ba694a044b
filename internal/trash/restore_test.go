package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestRestoreByteForByte: what was collected comes back with the same files, and other branches never change.
func TestRestoreByteForByte(t *testing.T) {
	ctx := context.Background()
	for _, fold := range []bool{false, true} {
		s, dir := kit.NewStore(t)
		c, want := kit.NewOrphan(t, s)
		main := kit.Bodies(t, c.Active())
		folder := filepath.Join(dir, c.ID().String(), "messages", "branch-gone")
		before := t.TempDir()
		kit.Check(t, os.CopyFS(before, os.DirFS(folder)))
		if fold {
			kit.Check(t, c.Fold(ctx))
		}
		moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
		kit.Check(t, c.Refresh(ctx))
		if fold {
			kit.Check(t, c.Fold(ctx))
		}
		if got := kit.Bodies(t, c.Active()); !slices.Equal(got, main) {
			t.Error("main changed")
		}
		r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, moved[0].Item))
		if r.Branch != "gone" || r.Messages != 5 || r.Missing != 0 {
			t.Errorf("%+v", r)
		}
		kit.Check(t, c.Refresh(ctx))
		if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch("gone"))); !slices.Equal(got, want) {
			t.Errorf("%d messages came back: %v, wanted %v", len(got), got, want)
		}
		kit.Check(t, c.Fold(ctx))
		for _, e := range kit.Must[[]os.DirEntry](t)(os.ReadDir(before)) {
			was, err := os.ReadFile(filepath.Join(before, e.Name()))
			is, err2 := os.ReadFile(filepath.Join(folder, e.Name()))
			if kit.Check(t, err, err2); string(was) != string(is) {
				t.Errorf("%s differs", e.Name())
			}
		}
		if _, err := trash.Restore(ctx, s, moved[0].Item); !errors.Is(err, engine.ErrNotExist) {
			t.Errorf("restoring twice: %v", err)
		}
		kit.Check(t, c.Close())
	}
}

// TestRestoreWhatIsMissing: messages that could not be had when they were collected are marked, the others come back
// around them.
func TestRestoreWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, want := kit.NewOrphan(t, s)
	kit.Check(t, c.Fold(ctx), c.Log.Exclusively(ctx, c.Log.Retire), c.Close())
	files, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "messages", "branch-gone", "*.json"))
	slices.Sort(files)
	kit.Check(t, os.WriteFile(files[1], []byte("harmed"), 0o600), os.Remove(files[4]))
	moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
	if len(moved) != 1 || !strings.Contains(kit.TrashOf(t, s, "line")[0].Reason, "2 unavailable") {
		t.Fatalf("%+v", kit.TrashOf(t, s, ""))
	}
	for round := range 2 {
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
			if m.Position != int64(i) || (m.Unavailable != nil) != missing || !strings.HasPrefix(want[i], m.ID.String()) ||
				!missing && m.ID.String()+string(m.Stored) != want[i] {
				t.Errorf("message %d: %s at %d, %v", i, m.ID, m.Position, m.Unavailable)
			}
		}
		if round > 0 {
			kit.Check(t, c.Close())
			break
		}
		// What is marked goes to trash and comes back as what it is.
		kit.Check(t, c.Remove(ctx, "gone"), c.Close())
		if moved, _ = kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(moved) != 1 {
			t.Fatalf("%+v", moved)
		}
	}
}

// TestRestoreWhatRowsRemember: a lost index is rebuilt from rows that were left over, and counts messages again that
// are nowhere but in trash. They come back from there, and the item does not go before.
func TestRestoreWhatRowsRemember(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 6)
	want := kit.Bodies(t, c.Active())
	kit.Check(t, c.Active().Rewind(ctx, 2), c.Fold(ctx), c.Close())
	rows := filepath.Join(dir, c.ID().String(), "index")
	saved := t.TempDir()
	kit.Check(t, os.CopyFS(saved, os.DirFS(rows)))
	moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
	journals, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "journal-*"))
	for _, path := range append(journals, rows, filepath.Join(dir, c.ID().String(), "index.json")) {
		kit.Check(t, os.RemoveAll(path))
	}
	kit.Check(t, os.CopyFS(rows, os.DirFS(saved)))
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, moved[0].Item))
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	for range 2 {
		if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch(r.Branch))); !slices.Equal(got, want) || r.Messages != 4 {
			t.Errorf("%+v: %v", r, got)
		}
		kit.Check(t, c.Fold(ctx))
	}
	kit.Check(t, c.Close())
}

// TestRestoreAGapOverAMessage: an item that lacks a message takes nothing away that came back from another one.
func TestRestoreAGapOverAMessage(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, want := kit.NewOrphan(t, s)
	moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
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

// TestRestoreWithABrokenIndex: a message whose name another line took meanwhile has one file, of another name, and its
// envelope says which, also when the index turns out to be broken while it comes back.
func TestRestoreWithABrokenIndex(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 1)
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"old":1}`)})
	want := kit.Bodies(t, c.Active())
	kit.Check(t, c.Active().Rewind(ctx, 1))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"new":1}`)})
	main := kit.Bodies(t, c.Active())
	kit.Check(t, c.Close())
	moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
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

// TestRestoreInOrder: what a line begins on has to be there first, and the error says what that is.
func TestRestoreInOrder(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 2)
	a := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "a", 2))
	kit.Fill(t, a, 3)
	b := kit.Must[*engine.Branch](t)(a.Fork(ctx, "b", 4))
	kit.Fill(t, b, 1)
	kit.Check(t, c.Remove(ctx, "a"), c.Remove(ctx, "b"))
	moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
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

// TestRestoreVersion: an old version becomes the present one, and that goes to trash: back and forth.
func TestRestoreVersion(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"role":"user","v":1}`)})
	kit.Check(t, c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"role":"assistant","v":2}`)}))
	for _, want := range []string{`{"role":"user","v":1}`, `{"role":"assistant","v":2}`} {
		items := kit.TrashOf(t, s, "version")
		if len(items) != 1 {
			t.Fatalf("%+v", items)
		}
		kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, items[0].Item))
		kit.Check(t, c.Refresh(ctx))
		m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
		if string(m.Stored) != want || !strings.Contains(want, m.Role) || m.Edited {
			t.Errorf("%s %s, wanted %s", m.Role, m.Stored, want)
		}
	}
	kit.Check(t, c.Close())
}

// TestRestoreContextAndBlobs: a context comes back with its payloads; blobs that were swept lie in their places again,
// and are not swept at once.
func TestRestoreContextAndBlobs(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("a"))})
	id := c.ID()
	kit.Check(t, c.Close())
	item := kit.Must[engine.TrashItem](t)(s.Delete(ctx, id)).Item
	age(t, dir)
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, item))
	if r.Context != id || r.Path != id.String() {
		t.Errorf("%+v", r)
	}
	for _, path := range kit.BlobFiles(t, dir) {
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Hour {
			t.Errorf("a sweep that goes on could take %s", path)
		}
	}
	c = kit.Must[*engine.Context](t)(s.Context(ctx, id))
	if got := kit.BodyOf(kit.Load(t, c.Active())[0]); got != kit.LargeBody("a") {
		t.Errorf("%.80s", got)
	}
	kit.Check(t, c.Close())

	sum, _, err := s.Blobs.Put([]byte("nobody's"))
	kit.Check(t, err)
	age(t, dir)
	if moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(moved) != 1 || moved[0].Kind != "blobs" {
		t.Fatalf("%+v", moved)
	}
	kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, kit.TrashOf(t, s, "blobs")[0].Item))
	kit.Check(t, s.Blobs.Verify(sum))
	if moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(moved) != 0 {
		t.Errorf("%+v moved right after it came back", moved)
	}
}

// TestNoRestore: what has no place to return to stays, and so does what is not what it says.
func TestNoRestore(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c, _ := kit.NewOrphan(t, s)
	moved, _ := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace})
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
		"folder with ..": {"item.json", `"branch-gone"`, `"../../branch-gone"`},
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
