package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRestoreByteForByte: what was collected comes back with the same files, and other branches never change.
func TestRestoreByteForByte(t *testing.T) {
	ctx := context.Background()
	for _, fold := range []bool{false, true} {
		s, dir := newStore(t)
		c, want := orphaned(t, s)
		main := bodies(t, c.Active())
		folder := filepath.Join(dir, c.ID().String(), "messages", "branch-gone")
		before := t.TempDir()
		check(t, os.CopyFS(before, os.DirFS(folder)))
		if fold {
			check(t, c.Fold(ctx))
		}
		moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
		check(t, c.Refresh(ctx))
		if fold {
			check(t, c.Fold(ctx))
		}
		if got := bodies(t, c.Active()); !slices.Equal(got, main) {
			t.Error("main changed")
		}
		r := must[Restored](t)(s.Restore(ctx, moved[0].Item))
		if r.Branch != "gone" || r.Messages != 5 || r.Missing != 0 {
			t.Errorf("%+v", r)
		}
		check(t, c.Refresh(ctx))
		if got := bodies(t, must[*Branch](t)(c.Branch("gone"))); !slices.Equal(got, want) {
			t.Errorf("%d messages came back: %v, wanted %v", len(got), got, want)
		}
		check(t, c.Fold(ctx))
		for _, e := range must[[]os.DirEntry](t)(os.ReadDir(before)) {
			was, err := os.ReadFile(filepath.Join(before, e.Name()))
			is, err2 := os.ReadFile(filepath.Join(folder, e.Name()))
			if check(t, err, err2); string(was) != string(is) {
				t.Errorf("%s differs", e.Name())
			}
		}
		if _, err := s.Restore(ctx, moved[0].Item); !errors.Is(err, ErrNotExist) {
			t.Errorf("restoring twice: %v", err)
		}
		check(t, c.Close())
	}
}

// TestRestoreWhatIsMissing: messages that could not be had when they were collected are marked, the others come back around them.
func TestRestoreWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c, want := orphaned(t, s)
	check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire), c.Close())
	files, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "messages", "branch-gone", "*.json"))
	slices.Sort(files)
	check(t, os.WriteFile(files[1], []byte("harmed"), 0o600), os.Remove(files[4]))
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	if len(moved) != 1 || !strings.Contains(trashOf(t, s, "line")[0].Reason, "2 unavailable") {
		t.Fatalf("%+v", trashOf(t, s, ""))
	}
	for round := range 2 {
		r := must[Restored](t)(s.Restore(ctx, moved[0].Item))
		if r.Messages != 3 || r.Missing != 2 {
			t.Errorf("%+v", r)
		}
		c = must[*Context](t)(s.Context(ctx, c.ID()))
		got := must[[]*Message](t)(must[*Branch](t)(c.Branch("gone")).Load(ctx))
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
			check(t, c.Close())
			break
		}
		// What is marked goes to trash and comes back as what it is.
		check(t, c.Remove(ctx, "gone"), c.Close())
		if moved, _ = collect(t, s, Collecting{Grace: DefaultGrace}); len(moved) != 1 {
			t.Fatalf("%+v", moved)
		}
	}
}

// TestRestoreWhatRowsRemember: a lost index is rebuilt from rows that were left over, and counts messages again that are nowhere but in
// trash. They come back from there, and the item does not go before.
func TestRestoreWhatRowsRemember(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	fill(t, c.Active(), 6)
	want := bodies(t, c.Active())
	check(t, c.Active().Rewind(ctx, 2), c.Fold(ctx), c.Close())
	rows := filepath.Join(dir, c.ID().String(), "index")
	saved := t.TempDir()
	check(t, os.CopyFS(saved, os.DirFS(rows)))
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	journals, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "journal-*"))
	for _, path := range append(journals, rows, filepath.Join(dir, c.ID().String(), "index.json")) {
		check(t, os.RemoveAll(path))
	}
	check(t, os.CopyFS(rows, os.DirFS(saved)))
	r := must[Restored](t)(s.Restore(ctx, moved[0].Item))
	c = must[*Context](t)(s.Context(ctx, c.ID()))
	for range 2 {
		if got := bodies(t, must[*Branch](t)(c.Branch(r.Branch))); !slices.Equal(got, want) || r.Messages != 4 {
			t.Errorf("%+v: %v", r, got)
		}
		check(t, c.Fold(ctx))
	}
	check(t, c.Close())
}

// TestRestoreAGapOverAMessage: an item that lacks a message takes nothing away that came back from another one.
func TestRestoreAGapOverAMessage(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c, want := orphaned(t, s)
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	other := uuid.Must(uuid.NewV7())
	path := filepath.Join(dir, c.ID().String(), "trash", other.String())
	check(t, os.CopyFS(path, os.DirFS(filepath.Join(dir, moved[0].Path))))
	b, err := os.ReadFile(path + "/messages-1.jsonl")
	check(t, err)
	lines := strings.SplitAfter(string(b), "\n")
	lines[1] = `{"ctxdir":"gap/1","position":2,"id":"` + want[2][:36] + `","reason":"x"}` + "\n"
	check(t, os.WriteFile(path+"/messages-1.jsonl", []byte(strings.Join(lines, "")), 0o600))
	for _, item := range []uuid.UUID{moved[0].Item, other} {
		must[Restored](t)(s.Restore(ctx, item))
		check(t, c.Refresh(ctx))
		if got := bodies(t, must[*Branch](t)(c.Branch("gone"))); !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	}
	check(t, c.Close())
}

// TestRestoreWithABrokenIndex: a message whose name another line took meanwhile has one file, of another name, and its envelope says
// which, also when the index turns out to be broken while it comes back.
func TestRestoreWithABrokenIndex(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	fill(t, c.Active(), 1)
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(7), Body: []byte(`{"old":1}`)}))
	want := bodies(t, c.Active())
	check(t, c.Active().Rewind(ctx, 1))
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(7), Body: []byte(`{"new":1}`)}))
	main := bodies(t, c.Active())
	check(t, c.Close())
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	folder := filepath.Join(dir, c.ID().String())
	check(t, os.RemoveAll(filepath.Join(folder, "index")))
	r := must[Restored](t)(s.Restore(ctx, moved[0].Item))
	for _, lost := range []string{"nothing", "index.json", "index"} {
		check(t, os.RemoveAll(filepath.Join(folder, lost)))
		c = must[*Context](t)(s.Context(ctx, c.ID()))
		check(t, c.Fold(ctx))
		if got := bodies(t, must[*Branch](t)(c.Branch(r.Branch))); !slices.Equal(got, want) {
			t.Errorf("without %s: %v, wanted %v", lost, got, want)
		}
		if got := bodies(t, c.Active()); !slices.Equal(got, main) {
			t.Errorf("without %s: main changed", lost)
		}
		if files, _ := filepath.Glob(filepath.Join(folder, "messages", "*", "*.json")); len(files) != 3 {
			t.Errorf("without %s: %d message files, wanted 3: %v", lost, len(files), files)
		}
		check(t, c.Close())
	}
}

// TestRestoreInOrder: what a line begins on has to be there first, and the error says what that is.
func TestRestoreInOrder(t *testing.T) {
	ctx := context.Background()
	s, _ := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	fill(t, c.Active(), 2)
	a := must[*Branch](t)(c.Active().Fork(ctx, "a", 2))
	fill(t, a, 3)
	b := must[*Branch](t)(a.Fork(ctx, "b", 4))
	fill(t, b, 1)
	check(t, c.Remove(ctx, "a"), c.Remove(ctx, "b"))
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	i := slices.IndexFunc(moved, func(x Trashed) bool { return x.Name == "a" })
	if len(moved) != 2 || i < 0 {
		t.Fatalf("%+v", moved)
	}
	if _, err := s.Restore(ctx, moved[1-i].Item); !errors.Is(err, ErrPosition) || !strings.Contains(err.Error(), moved[i].Item.String()) {
		t.Errorf("restoring b before a: %v", err)
	}
	for _, x := range []Trashed{moved[i], moved[1-i]} {
		must[Restored](t)(s.Restore(ctx, x.Item))
	}
	check(t, c.Refresh(ctx))
	if got := must[[]*Message](t)(must[*Branch](t)(c.Branch("b")).Load(ctx)); len(got) != 5 {
		t.Errorf("%d messages", len(got))
	}
	check(t, c.Close())
}

// TestRestoreVersion: an old version becomes the present one, and that goes to trash: back and forth.
func TestRestoreVersion(t *testing.T) {
	ctx := context.Background()
	s, _ := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"role":"user","v":1}`)}))
	check(t, c.Active().Replace(ctx, at.ID, Draft{Body: []byte(`{"role":"assistant","v":2}`)}))
	for _, want := range []string{`{"role":"user","v":1}`, `{"role":"assistant","v":2}`} {
		items := trashOf(t, s, "version")
		if len(items) != 1 {
			t.Fatalf("%+v", items)
		}
		must[Restored](t)(s.Restore(ctx, items[0].Item))
		check(t, c.Refresh(ctx))
		m := must[*Message](t)(c.Active().Message(ctx, at.ID))
		if string(m.Stored) != want || !strings.Contains(want, m.Role) || m.Edited {
			t.Errorf("%s %s, wanted %s", m.Role, m.Stored, want)
		}
	}
	check(t, c.Close())
}

// TestRestoreContextAndBlobs: a context comes back with its payloads; blobs that were swept lie in their places again, and are
// not swept at once.
func TestRestoreContextAndBlobs(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(1<<10))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("a"))}))
	id := c.ID()
	check(t, c.Close())
	item := must[Trashed](t)(s.Delete(ctx, id)).Item
	age(t, dir)
	r := must[Restored](t)(s.Restore(ctx, item))
	if r.Context != id || r.Path != id.String() {
		t.Errorf("%+v", r)
	}
	for _, path := range blobFiles(t, dir) {
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Hour {
			t.Errorf("a sweep that goes on could take %s", path)
		}
	}
	c = must[*Context](t)(s.Context(ctx, id))
	if got := bodyOf(must[[]*Message](t)(c.Active().Load(ctx))[0]); got != largeBody("a") {
		t.Errorf("%.80s", got)
	}
	check(t, c.Close())

	sum, _, err := s.blobs.Put([]byte("nobody's"))
	check(t, err)
	age(t, dir)
	if moved, _ := collect(t, s, Collecting{Grace: DefaultGrace}); len(moved) != 1 || moved[0].Kind != "blobs" {
		t.Fatalf("%+v", moved)
	}
	must[Restored](t)(s.Restore(ctx, trashOf(t, s, "blobs")[0].Item))
	check(t, s.blobs.Verify(sum))
	if moved, _ := collect(t, s, Collecting{Grace: DefaultGrace}); len(moved) != 0 {
		t.Errorf("%+v moved right after it came back", moved)
	}
}

// TestNoRestore: what has no place to return to stays, and so does what is not what it says.
func TestNoRestore(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c, _ := orphaned(t, s)
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	path := filepath.Join(dir, moved[0].Path)
	good, err := os.ReadFile(path + "/messages-1.jsonl")
	check(t, err)
	info, err := os.ReadFile(path + "/item.json")
	check(t, err)
	for name, x := range map[string]struct{ file, was, is string }{
		"another line":   {"messages-1.jsonl", `"line":"`, `"line":"00000000-0000-4000-8000-000000000000","x":"`},
		"no message":     {"messages-1.jsonl", `"message":`, `"message":x`},
		"a wrong place":  {"messages-1.jsonl", `"position":1`, `"position":7`},
		"one is missing": {"item.json", `"to":6`, `"to":7`},
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
		check(t, os.WriteFile(filepath.Join(path, x.file), []byte(harmed), 0o600))
		if _, err := s.Restore(ctx, moved[0].Item); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, os.WriteFile(filepath.Join(path, x.file), from, 0o600), c.Refresh(ctx))
		if _, err := c.Branch("gone"); err == nil {
			t.Fatalf("%s: the branch came back", name)
		}
	}
	must[Restored](t)(s.Restore(ctx, moved[0].Item))
	if _, err := s.Restore(ctx, uuid.New()); !errors.Is(err, ErrNotExist) {
		t.Error(err)
	}
	check(t, c.Close())
}
