//go:build unix

package trash_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestRestoreWhatWasAppendedAnew: a message that was erased and appended anew comes back where it was, beside the
// erased position.
func TestRestoreWhatWasAppendedAnew(t *testing.T) {
	ctx := context.Background()
	for _, lost := range []string{"nothing", "index.json", "messages"} {
		s, dir := kit.NewStore(t, engine.WithSealBytes(-1))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 1)
		gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
		draft := engine.Draft{ID: kit.TestID(7), Body: []byte(`{"text":"appended again"}`)}
		kit.Append(t, gone, draft)
		kit.Fill(t, gone, 1)
		kit.Must[erase.Removal](t)(first(kit.Erase(s, c.ID(), kit.TestID(7), erase.Options{})))
		kit.Append(t, gone, draft)
		kit.Fill(t, gone, 1)
		kit.Check(t, c.Remove(ctx, "gone"), c.Close())
		r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, kit.TrashOf(t, s, "line")[0].Item))
		if r.Messages != 4 {
			t.Errorf("%+v", r)
		}
		folder := filepath.Join(dir, c.ID().String())
		kit.Check(t, os.RemoveAll(filepath.Join(folder, lost)))
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		got := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch("gone")))
		if len(got) != 5 || !errors.Is(got[1].Unavailable, engine.ErrErased) ||
			got[3].ID != kit.TestID(7) || kit.BodyOf(got[3]) != string(draft.Body) ||
			slices.ContainsFunc(got[2:], func(m *engine.Message) bool { return m.Unavailable != nil }) {
			t.Errorf("without %s:", lost)
			for _, m := range got {
				t.Errorf("%d: %s %v", m.Position, m.ID, m.Unavailable)
			}
		}
		kit.Check(t, c.Close())
	}
}

// TestRestoreKeepsTheRest: nothing goes with an item that is restored but what came back.
func TestRestoreKeepsTheRest(t *testing.T) {
	ctx := context.Background()
	h := newHoard(t)
	// A context that says it is blobs, and one beside another.
	whole := filepath.Join(h.dir, h.whole.Path)
	blobs := h.in(`{"ctxdir":"trash/1","kind":"blobs","name":"blobs","removed_at":"2026-01-02T03:04:05Z"}`)
	beside := kit.TestID(50).String()
	kit.Check(t, os.CopyFS(blobs+"/"+h.whole.Name, os.DirFS(whole+"/"+h.whole.Name)),
		os.CopyFS(whole+"/"+beside, os.DirFS(whole+"/"+h.whole.Name)))
	for _, item := range []string{blobs, whole} {
		_, _ = trash.Restore(ctx, h.store, engine.ItemID(item))
	}
	for _, path := range []string{blobs + "/" + h.whole.Name, whole + "/" + beside} {
		kit.Must[[]byte](t)(os.ReadFile(path + "/metadata.json"))
	}
}

// TestRestoreOverADamagedBlob: the whole one takes the place of one that is damaged.
func TestRestoreOverADamagedBlob(t *testing.T) {
	h := newHoard(t)
	paths, err := filepath.Glob(filepath.Join(h.dir, h.blobs.Path, "*.zst"))
	if kit.Check(t, err); len(paths) != 1 {
		t.Fatal(paths)
	}
	sum, _ := blob.ParseFile(filepath.Base(paths[0]))
	place := filepath.Join(h.dir, blob.Path(sum))
	kit.Check(t, os.MkdirAll(filepath.Dir(place), 0o700))
	kit.Write(t, place, []byte("damaged"))
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(context.Background(), h.store, h.blobs.Item))
	if err := h.store.Blobs.Verify(sum); err != nil || r.Bytes == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRestoreVersionOfErased: an old version that turned up again does not bring back what was erased.
func TestRestoreVersionOfErased(t *testing.T) {
	h := newHoard(t)
	saved := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(h.dir, h.old.Path)))
	kit.Must[erase.Removal](t)(first(kit.Erase(h.store, h.c.ID(), h.id(1), erase.Options{Shared: true})))
	kit.Write(t, filepath.Join(h.dir, h.old.Path), saved)
	if _, err := trash.Restore(context.Background(), h.store, h.old.Item); !errors.Is(err, engine.ErrErased) {
		t.Errorf("%v", err)
	}
}

// TestRestoreWhatWasEdited: a message that was edited by hand and then refers to a payload says so when it comes back
// from trash: a sweep leaves the payload alone.
func TestRestoreWhatWasEdited(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("kept"))})
	reference := kit.Load(t, c.Active())[0].Stored
	gone := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "gone"))
	at := kit.Append(t, gone, engine.Draft{Body: []byte(`{"text":"edit me"}`)})
	kit.Check(t, c.Seal(ctx))
	path := filepath.Join(dir, c.ID().String(), "messages", "branch-gone", at.ID.String()+".json")
	raw := kit.Must[[]byte](t)(os.ReadFile(path))
	kit.Write(t, path, bytes.Replace(raw, []byte(`{"text":"edit me"}`), reference, 1))
	kit.Check(t, c.Active().Rewind(ctx, 0), c.Remove(ctx, "gone"), c.Close())
	var items []uuid.UUID
	for _, x := range kit.TrashOf(t, s, "line") {
		if items = append(items, x.Item); x.Name == "gone" {
			kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, x.Item))
		}
	}
	for _, err := range trash.Purge(ctx, s, items, 0, false) {
		kit.Check(t, err)
	}
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	kit.Check(t, c.Seal(ctx))
	age(t, dir)
	if moved := kit.Sweep(t, s, 0); len(moved) > 0 {
		t.Errorf("swept %+v", moved)
	}
	m := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch("gone")))[0]
	if body, err := m.Body(ctx); err != nil || string(body) != kit.LargeBody("kept") {
		t.Errorf("%.60s, %v", body, err)
	}
	kit.Check(t, c.Close())
}

func first[T any](all []T, err error) (one T, _ error) {
	if len(all) > 0 {
		one = all[0]
	}
	return one, err
}
