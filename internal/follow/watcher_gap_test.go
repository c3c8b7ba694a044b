package follow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/watch"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestWatchProjection: a change of the metadata is reported once, when its record is there. An older metadata.json that
// comes back is no event, an edit of it is one, and none again when a writer takes it in.
func TestWatchProjection(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: "first"}))
	defer c.Close()
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	defer w.Close()
	wants := func(want ...string) {
		t.Helper()
		var lines []string
		for e, err := range w.Pending(ctx) {
			kit.Check(t, err)
			lines = append(lines, line(e))
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%q, wanted %q", lines, want)
		}
	}
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	before := kit.Must[[]byte](t)(os.ReadFile(file))
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "new"))
	kit.Check(t, os.WriteFile(file, before, 0o600))
	wants("branch.created new")
	wants()
	kit.Check(t, c.Seal(ctx), c.Switch(ctx, "new"))
	wants("metadata.changed")
	text := strings.Replace(string(kit.Must[[]byte](t)(os.ReadFile(file))), `"first"`, `"By hand"`, 1)
	kit.Check(t, os.WriteFile(file, []byte(text), 0o600))
	wants("metadata.changed")
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	wants("message.appended new 0")
	if m := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID())).Metadata(); m.Title != "By hand" || m.ActiveBranch != "new" {
		t.Errorf("%+v", m)
	}
}

// TestWatchFromBeforeAnEdit: a follower that begins behind an older commit reports the changes since in order, and an
// edit of metadata.json by hand last.
func TestWatchFromBeforeAnEdit(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: "first"}))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	from := kit.Must[uint64](t)(follow.Sequence(c))
	for _, title := range []string{"second", "third"} {
		kit.Check(t, c.Update(ctx, func(m *engine.Metadata) error { m.Title = title; return nil }))
	}
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	text := strings.Replace(string(kit.Must[[]byte](t)(os.ReadFile(file))), `"third"`, `"By hand"`, 1)
	kit.Check(t, os.WriteFile(file, []byte(text), 0o600))
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, from))
	defer w.Close()
	var got []string
	for e, err := range w.Pending(ctx) {
		kit.Check(t, err)
		got = append(got, e.Before.Title+" -> "+e.Metadata.Title)
	}
	if want := []string{"first -> second", "second -> third", "third -> By hand"}; !slices.Equal(got, want) {
		t.Errorf("%q, wanted %q", got, want)
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
	// The next writer takes in an edit by hand that nobody looked at, in a commit before its own.
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	text := strings.Replace(string(kit.Must[[]byte](t)(os.ReadFile(file))), `"title": ""`, `"title": "By hand"`, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "new"))
	wantEvents(t, w, "metadata.changed", "branch.created new")
	kit.Check(t, c.Change(ctx, func(m *engine.Metadata) error {
		m.Title, m.Branches[1].Name = "both", "renamed"
		return nil
	}))
	wantEvents(t, w, "branch.renamed renamed was new more", "metadata.changed")
}

// TestWatchGap: where an older copy of the history takes its place, there is a resync, and it goes on.
func TestWatchGap(t *testing.T) {
	ctx := context.Background()
	for name, more := range map[string]int{"shorter": 1, "as long": 2, "longer": 3} {
		t.Run(name, func(t *testing.T) {
			s, dir := kit.NewStore(t)
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			defer c.Close()
			kit.Fill(t, c.Active(), 3)
			w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, kit.Must[uint64](t)(follow.Sequence(c))))
			defer w.Close()
			logs := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, c.ID().String(), "log-*.jsonl")))
			if len(logs) != 1 {
				t.Fatal(logs)
			}
			old := kit.Must[[]byte](t)(os.ReadFile(logs[0]))
			kit.Fill(t, c.Active(), 2)
			wantEvents(t, w, "message.appended main 3", "message.appended main 4")
			kit.Check(t, os.WriteFile(logs[0]+"~", old, 0o600), os.Rename(logs[0]+"~", logs[0]))
			other := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
			defer other.Close()
			for range more {
				kit.Append(t, other.Active(), engine.Draft{Body: []byte(`{"other":true}`)})
			}
			if e := wantEvents(t, w, "resync"); e.Branches[0].Messages != 3+int64(more) {
				t.Errorf("%+v", e.Branches)
			}
			at := kit.Append(t, other.Active(), engine.Draft{Body: []byte(`{}`)})
			wantEvents(t, w, fmt.Sprint("message.appended main ", at.Position))
		})
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
	kit.Check(t, c.Seal(ctx))
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	defer w.Close()
	file := filepath.Join(dir, c.ID().String(), "messages", "branch-main", at.ID.String()+".json")
	edit(t, file)
	w.TakeHints(watch.Batch{All: true, Files: map[string]bool{file: true}})
	wantEvents(t, w, "message.edited main 0")
}

// TestWatchLostLog: a follower of a context whose newest log is lost gets one [follow.Resync], another one where a log takes
// its place, and then what is committed to that.
func TestWatchLostLog(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, kit.Manual(-1)...)
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":0}`)})
	kit.Check(t, c.Seal(ctx))
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	defer w.Close()
	wants := func(want ...string) {
		t.Helper()
		var lines []string
		for e, err := range w.Pending(ctx) {
			kit.Check(t, err)
			if lines = append(lines, line(e)); len(lines) > len(want) {
				break
			}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%q, wanted %q", lines, want)
		}
	}
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":1}`)})
	wants("message.appended main 1")
	kit.Check(t, c.Close())
	for _, log := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "log-*"))) {
		kit.Check(t, os.Remove(log))
	}
	wants("resync")
	wants()
	again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer again.Close()
	kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"n":2}`)})
	wants("resync") // records are missing before it
	kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"n":3}`)})
	wants("message.appended main 3") // the one that only the lost log had has a file
}
