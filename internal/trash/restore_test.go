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

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestRestoreInPlace: a removed branch comes back with one commit, under its name or a free one. Its files stay where
// they are, and other branches never change.
func TestRestoreInPlace(t *testing.T) {
	ctx := context.Background()
	for _, seal := range []bool{false, true} {
		s, dir := kit.NewStore(t)
		c, want := kit.NewOrphan(t, s)
		main := kit.Bodies(t, c.Active())
		if seal {
			kit.Check(t, c.Seal(ctx))
		}
		before := kit.Tree(t, filepath.Join(dir, c.ID().String(), "messages"))
		kit.Check(t, kit.CollectAll(s, trash.DefaultGrace), c.Refresh(ctx))
		item := kit.TrashOf(t, s, "line")[0]
		const reason = `no branch shows messages 1 to 5 of "gone", which was removed`
		if item.Item == uuid.Nil || item.Name != "gone" || item.Bytes == 0 || item.Reason != reason {
			t.Errorf("%+v", item)
		}
		name := "gone"
		if seal {
			name = "gone-2"
			kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "gone"))
		}
		r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, item.Item))
		if r.Branch != name || r.Messages != 5 || r.Bytes != item.Bytes {
			t.Errorf("%+v", r)
		}
		kit.Check(t, c.Refresh(ctx))
		if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch(name))); !slices.Equal(got, want) {
			t.Errorf("%d messages came back: %v, wanted %v", len(got), got, want)
		}
		if got := kit.Bodies(t, c.Active()); !slices.Equal(got, main) {
			t.Error("main changed")
		}
		if kit.Tree(t, filepath.Join(dir, c.ID().String(), "messages")) != before {
			t.Error("message files changed")
		}
		if _, err := trash.Restore(ctx, s, item.Item); !errors.Is(err, engine.ErrNotExist) {
			t.Errorf("restoring twice: %v", err)
		}
		kit.Check(t, c.Close())
	}
}

// TestRestoreInAnyOrder: a removed branch shows what it showed, whether or not the branch that it was forked from is
// restored or purged.
func TestRestoreInAnyOrder(t *testing.T) {
	ctx := context.Background()
	for _, purge := range []bool{false, true} {
		s, _ := kit.NewStore(t)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 2)
		a := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "a", 2))
		kit.Fill(t, a, 3)
		b := kit.Must[*engine.Branch](t)(a.Fork(ctx, "b", 4))
		kit.Fill(t, b, 1)
		ofA, ofB := kit.Bodies(t, a), kit.Bodies(t, b)
		kit.Check(t, c.Remove(ctx, "a"), c.Remove(ctx, "b"))
		first, second := kit.Must[engine.TrashItem](t)(kit.FindItem(s, "a")), kit.Must[engine.TrashItem](t)(kit.FindItem(s, "b"))
		if !strings.Contains(first.Reason, "messages 4 to 4 ") || !strings.Contains(second.Reason, "messages 4 to 4 ") {
			t.Errorf("%s; %s", first.Reason, second.Reason)
		}
		if purge {
			for x, err := range trash.Purge(ctx, s, []uuid.UUID{first.Item}, 0, false) {
				if kit.Check(t, err); x.Item != first.Item {
					t.Errorf("%+v", x)
				}
			}
		}
		kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, second.Item))
		kit.Check(t, c.Refresh(ctx))
		if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch("b"))); !slices.Equal(got, ofB) {
			t.Errorf("b shows %v", got)
		}
		_, err := trash.Restore(ctx, s, first.Item)
		if errors.Is(err, engine.ErrNotExist) != purge {
			t.Errorf("purged %v: %v", purge, err)
		}
		if !purge {
			kit.Check(t, c.Refresh(ctx))
			if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch("a"))); !slices.Equal(got, ofA) {
				t.Errorf("a shows %v", got)
			}
		}
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
			t.Errorf("%+v, %v", f, err)
		}
		kit.Check(t, c.Close())
	}
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
