//go:build unix

package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/google/uuid"
)

// TestRestoreWhatWasAppendedAnew: a message that was erased and appended anew comes back where it was, beside the erased position.
func TestRestoreWhatWasAppendedAnew(t *testing.T) {
	ctx := context.Background()
	for _, lost := range []string{"nothing", "index.json", "journals"} {
		s, dir := newStore(t, WithFoldBytes(-1))
		c := must[*Context](t)(s.Create(ctx, Metadata{}))
		fill(t, c.Active(), 1)
		gone := must[*Branch](t)(c.Active().Fork(ctx, "gone", 1))
		draft := Draft{ID: testID(7), Body: []byte(`{"text":"appended again"}`)}
		must[Appended](t)(gone.Append(ctx, draft))
		fill(t, gone, 1)
		must[Erased](t)(first(erase(s, c.ID(), testID(7), EraseOptions{})))
		must[Appended](t)(gone.Append(ctx, draft))
		fill(t, gone, 1)
		check(t, c.Remove(ctx, "gone"), c.Close())
		moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
		r := must[Restored](t)(s.Restore(ctx, moved[0].Item))
		if r.Messages != 3 || r.Missing != 1 {
			t.Errorf("%+v", r)
		}
		folder := filepath.Join(dir, c.ID().String())
		switch lost {
		case "index.json":
			check(t, os.Remove(filepath.Join(folder, lost)))
		case "journals":
			c = must[*Context](t)(s.Context(ctx, c.ID()))
			check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire), c.Close())
		}
		c = must[*Context](t)(s.Context(ctx, c.ID()))
		got := must[[]*Message](t)(must[*Branch](t)(c.Branch("gone")).Load(ctx))
		if len(got) != 5 || !errors.Is(got[1].Unavailable, ErrErased) || got[3].ID != testID(7) || bodyOf(got[3]) != string(draft.Body) ||
			slices.ContainsFunc(got[2:], func(m *Message) bool { return m.Unavailable != nil }) {
			t.Errorf("without %s:", lost)
			for _, m := range got {
				t.Errorf("%d: %s %v", m.Position, m.ID, m.Unavailable)
			}
		}
		check(t, c.Close())
	}
}

// TestRestoreKeepsTheRest: nothing goes with an item that is restored but what came back.
func TestRestoreKeepsTheRest(t *testing.T) {
	ctx := context.Background()
	h := newHoard(t)
	// An item that says it has nothing, and has messages.
	empty := h.like(map[string]any{"to": 1})
	if _, err := h.store.Restore(ctx, itemID(empty)); !errors.Is(err, ErrDamaged) {
		t.Errorf("an item with more than it says: %v", err)
	}
	must[[]byte](t)(os.ReadFile(empty + "/messages-1.jsonl"))
	// A context that says it is blobs, and one beside another.
	whole := filepath.Join(h.dir, h.whole.Path)
	blobs := h.in(`{"ctxdir":"trash/1","kind":"blobs","name":"blobs","removed_at":"2026-01-02T03:04:05Z"}`)
	beside := testID(50).String()
	check(t, os.CopyFS(blobs+"/"+h.whole.Name, os.DirFS(whole+"/"+h.whole.Name)),
		os.CopyFS(whole+"/"+beside, os.DirFS(whole+"/"+h.whole.Name)))
	for _, item := range []string{blobs, whole} {
		_, _ = h.store.Restore(ctx, itemID(item))
	}
	for _, path := range []string{blobs + "/" + h.whole.Name, whole + "/" + beside} {
		must[[]byte](t)(os.ReadFile(path + "/metadata.json"))
	}
}

// TestRestoreOverADamagedBlob: the whole one takes the place of one that is damaged.
func TestRestoreOverADamagedBlob(t *testing.T) {
	h := newHoard(t)
	paths, err := filepath.Glob(filepath.Join(h.dir, h.blobs.Path, "*.zst"))
	if check(t, err); len(paths) != 1 {
		t.Fatal(paths)
	}
	sum, _ := blob.ParseFile(filepath.Base(paths[0]))
	place := filepath.Join(h.dir, blob.Path(sum))
	check(t, os.MkdirAll(filepath.Dir(place), 0o700))
	write(t, place, []byte("damaged"))
	r := must[Restored](t)(h.store.Restore(context.Background(), h.blobs.Item))
	if err := h.store.blobs.Verify(sum); err != nil || r.Bytes == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRestoreVersionOfErased: an old version that turned up again does not bring back what was erased.
func TestRestoreVersionOfErased(t *testing.T) {
	h := newHoard(t)
	saved := must[[]byte](t)(os.ReadFile(filepath.Join(h.dir, h.old.Path)))
	must[Erased](t)(first(erase(h.store, h.c.ID(), h.id(1), EraseOptions{Shared: true})))
	write(t, filepath.Join(h.dir, h.old.Path), saved)
	if _, err := h.store.Restore(context.Background(), h.old.Item); !errors.Is(err, ErrErased) {
		t.Errorf("%v", err)
	}
}

// TestRestoreWhatWasEdited: a message that was edited by hand and then refers to a payload says so when it comes back from trash: a sweep
// leaves the payload alone.
func TestRestoreWhatWasEdited(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(1<<10), WithFoldBytes(-1))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("kept"))}))
	reference := must[[]*Message](t)(c.Active().Load(ctx))[0].Stored
	gone := must[*Branch](t)(c.NewBranch(ctx, "gone"))
	at := must[Appended](t)(gone.Append(ctx, Draft{Body: []byte(`{"text":"edit me"}`)}))
	check(t, c.Fold(ctx))
	path := filepath.Join(dir, c.ID().String(), "messages", "branch-gone", at.ID.String()+".json")
	raw := must[[]byte](t)(os.ReadFile(path))
	write(t, path, bytes.Replace(raw, []byte(`{"text":"edit me"}`), reference, 1))
	check(t, c.Active().Rewind(ctx, 0), c.Remove(ctx, "gone"), c.Close())
	var items []uuid.UUID
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	for _, x := range moved {
		if items = append(items, x.Item); x.Name == "gone" {
			must[Restored](t)(s.Restore(ctx, x.Item))
		}
	}
	for _, err := range s.Purge(ctx, items, 0, false) {
		check(t, err)
	}
	c = must[*Context](t)(s.Context(ctx, c.ID()))
	check(t, c.Fold(ctx))
	age(t, dir)
	if moved := sweep(t, s, 0, false); len(moved) > 0 {
		t.Errorf("swept %+v", moved)
	}
	m := must[[]*Message](t)(must[*Branch](t)(c.Branch("gone")).Load(ctx))[0]
	if body, err := m.Body(ctx); err != nil || string(body) != largeBody("kept") {
		t.Errorf("%.60s, %v", body, err)
	}
	check(t, c.Close())
}

func first[T any](all []T, err error) (one T, _ error) {
	if len(all) > 0 {
		one = all[0]
	}
	return one, err
}
