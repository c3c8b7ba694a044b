package follow_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/watch"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestWatchUncommitted: a change of the metadata that got as far as the journal and no further never happened; one that
// is on its way is told when it is there, and before what follows it.
func TestWatchUncommitted(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, 0))
	defer w.Close()
	recorded := func(title string) {
		t.Helper()
		err := c.Write(ctx, func(m *engine.Metadata) error {
			m = m.Clone()
			m.Title = title
			m.Revision++
			return c.Log.Append([]index.Item{{Kind: index.KindMetadata, Body: ctxfolder.RawMetadata(m)}}).Err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pending := func() (lines []string) {
		for e, err := range w.Pending(ctx) {
			lines = append(lines, line(e))
			if err != nil {
				t.Fatal(err)
			}
		}
		return lines
	}
	recorded("never")
	if got := pending(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	recorded("never again")
	recorded("nor this")
	if err := c.Update(ctx, func(m *engine.Metadata) error { m.Title = "T"; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := pending(); !slices.Equal(got, []string{"message.appended main 0", "metadata.changed"}) {
		t.Errorf("%q", got)
	}
	// Told late, with a new journal behind it.
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "late"))
	if err := errors.Join(c.Log.Fold(ctx, false), c.Switch(ctx, "late")); err != nil {
		t.Fatal(err)
	}
	if got := pending(); !slices.Equal(got, []string{"branch.created late", "metadata.changed"}) {
		t.Errorf("%q", got)
	}
	// On its way: the journal has it, metadata.json does not yet.
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	before := kit.Must[[]byte](t)(os.ReadFile(file))
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "new"))
	after := kit.Must[[]byte](t)(os.ReadFile(file))
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := pending(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(file, after, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := pending(); !slices.Equal(got, []string{"branch.created new"}) {
		t.Errorf("%q", got)
	}
}

// TestWatchTogether: a commit that changes several things makes several events, of which all but the last say that
// there is more.
func TestWatchTogether(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	defer w.Close()
	// Nobody looks between an edit by hand and the next commit, which has both.
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	text := strings.Replace(string(kit.Must[[]byte](t)(os.ReadFile(file))), `"title": ""`, `"title": "By hand"`, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "new"))
	wantEvents(t, w, "branch.created new more", "metadata.changed")
}

// TestWatchGap: where the journals are lost, there is a resync, and it goes on.
func TestWatchGap(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	body := []byte(`{}`)
	for range 3 {
		kit.Append(t, c.Active(), engine.Draft{Body: body})
	}
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, 1))
	defer w.Close()
	wantEvents(t, w, "message.appended main 1", "message.appended main 2")
	folder := filepath.Join(dir, c.ID().String())
	for _, name := range []string{"index.json", "index", "journal-1.jsonl"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	other := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer other.Close()
	kit.Append(t, other.Active(), engine.Draft{Body: body})
	if e := wantEvents(t, w, "resync"); e.Branches[0].Messages != 4 {
		t.Errorf("%+v", e.Branches)
	}
	kit.Append(t, other.Active(), engine.Draft{Body: body})
	wantEvents(t, w, "message.appended main 4")
}

// TestWatchPendingRests: a change of the metadata that is on its way while a context is at rest is told when it is
// there.
func TestWatchPendingRests(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	before := kit.Must[[]byte](t)(os.ReadFile(file))
	kit.Check(t, c.Rename(ctx, "main", "trunk"))
	after := kit.Must[[]byte](t)(os.ReadFile(file))
	kit.Check(t, os.WriteFile(file, before, 0o600))
	w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s)) // each context rests at first
	defer w.Close()
	one := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, 1<<40))
	defer one.Close()
	e := wantEvents(t, one, "resync")
	if e.Seq != 1 || e.Branches[0].Name != "main" || e.Branches[0].Messages != 1 {
		t.Errorf("%+v", e)
	}
	kit.Check(t, os.WriteFile(file, after, 0o600))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	for _, w := range []*follow.Watcher{w, one, kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, e.Seq))} {
		if e := wantEvents(t, w, "branch.renamed trunk was main", "message.appended trunk 1"); e.Seq != 3 {
			t.Errorf("%+v", e)
		}
		w.Close()
	}
}

// TestWatchShown: a message is told under a branch that shows it, or under none; what changes nothing is not told.
func TestWatchShown(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	body := engine.Draft{Body: []byte(`{}`)}
	main := c.Active()
	kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error { m.Extra.Set("import", json.RawMessage(`{"a":{"b":1}}`)); return nil }))
	first := kit.Append(t, main, body)
	kit.Append(t, main, body)
	alt := kit.Must[*engine.Branch](t)(main.Fork(ctx, "alt", 1))
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	defer w.Close()
	kit.Check(t, main.Rewind(ctx, 0), alt.Replace(ctx, first.ID, engine.Draft{Body: []byte(`{"n":1}`)}, engine.Shared()))
	kit.Check(t, c.Update(ctx, func(*engine.Metadata) error { return nil }))
	kit.Append(t, main, body)
	wantEvents(t, w, "branch.moved main", "message.replaced alt 0", "message.appended main 0")
}

// TestWatchLostHints: where hints were lost, the files that others name are looked at all the same.
func TestWatchLostHints(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, polled())
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"role":"user","content":"x"}`)})
	kit.Check(t, c.Fold(ctx))
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	defer w.Close()
	file := filepath.Join(dir, c.ID().String(), "messages", "branch-main", at.ID.String()+".json")
	edit(t, file)
	w.TakeHints(watch.Batch{All: true, Files: map[string]bool{file: true}})
	wantEvents(t, w, "message.edited main 0")
}
