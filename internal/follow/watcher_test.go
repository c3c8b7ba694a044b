package follow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/watch"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// patience is how long a test waits for an event that has to come: only one that fails waits so long.
const patience = 2 * time.Minute

// polled makes watchers poll.
func polled() engine.Option {
	return func(o *engine.Options) {
		o.Watching = watch.Options{Poll: errors.New("a test wants it"), Every: time.Millisecond}
	}
}

// line is an event as a line of text.
func line(e follow.Event) string {
	words := []string{string(e.Kind)}
	if e.Branch != "" {
		words = append(words, e.Branch)
	}
	if e.Was != "" {
		words = append(words, "was "+e.Was)
	}
	if e.Message != nil {
		words = append(words, fmt.Sprint(e.Message.Position))
	}
	if e.More {
		words = append(words, "more")
	}
	return strings.Join(words, " ")
}

// events reads events until there are n.
func events(t *testing.T, w *follow.Watcher, n int) (lines []string, last follow.Event) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if n == 0 {
		return nil, last
	}
	for e, err := range w.Events(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		lines, last = append(lines, line(e)), e
		if len(lines) == n {
			return lines, last
		}
	}
	t.Fatalf("%d events, wanted %d: %q", len(lines), n, lines)
	return nil, last
}

func wantEvents(t *testing.T, w *follow.Watcher, want ...string) follow.Event {
	t.Helper()
	got, last := events(t, w, len(want))
	if !slices.Equal(got, want) {
		t.Fatalf("events\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return last
}

// TestWatchKinds: each operation makes the events that it should, by hints and by polling.
func TestWatchKinds(t *testing.T) {
	for name, opts := range map[string][]engine.Option{"hints": nil, "polling": {polled()}} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s, dir := kit.NewStore(t, opts...)
			other := kit.Must[*engine.Store](t)(kit.Open(dir)) // another process, as far as handles go
			defer other.Close()
			c := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{}))
			defer c.Close()
			mine := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
			defer mine.Close()
			w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, mine, follow.FromNow))
			defer w.Close()
			if polls := w.Polling() != nil; polls != (name == "polling") {
				t.Fatalf("polling: %v", w.Polling())
			}
			main := c.Active()
			body := []byte(`{"role":"user","content":"x"}`)
			first := kit.Append(t, main, engine.Draft{Body: body})
			kit.Must[[]engine.BatchResult](t)(main.AppendBatch(ctx, []engine.Draft{{Body: body}, {Body: body}}))
			wantEvents(t, w, "message.appended main 0", "message.appended main 1", "message.appended main 2")
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(main.Replace(ctx, first.ID, engine.Draft{Body: []byte(`{"role":"user","content":"y"}`)}))
			if e := wantEvents(t, w, "message.replaced main 0"); !strings.Contains(string(kit.Must[[]byte](t)(bodyOfEvent(e))), `"y"`) {
				t.Errorf("the event has another message: %s", e.Message.Stored)
			}
			alt := kit.Must[*engine.Branch](t)(main.Fork(ctx, "alt", 2))
			kit.Append(t, alt, engine.Draft{Body: body})
			wantEvents(t, w, "branch.created alt", "message.appended alt 2")
			check(c.Rename(ctx, "alt", "other"))
			e := wantEvents(t, w, "branch.renamed other was alt")
			if b := e.Branches[0]; b.Messages != 3 || b.Base != 2 || b.Bytes == 0 {
				t.Errorf("%+v", e.Branches)
			}
			check(c.Switch(ctx, "other"))
			wantEvents(t, w, "metadata.changed")
			check(main.Rewind(ctx, 1))
			kit.Append(t, main, engine.Draft{Body: body})
			wantEvents(t, w, "branch.moved main", "message.appended main 1")
			check(c.Remove(ctx, "main"))
			check(c.Update(ctx, func(m *engine.Metadata) error { m.Title = "T"; return nil }))
			if e := wantEvents(t, w, "branch.removed main", "metadata.changed"); e.Metadata.Title != "T" {
				t.Errorf("title %q", e.Metadata.Title)
			}
			check(c.Fold(ctx))
			kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
			kit.Must[engine.ArchiveResult](t)(c.Unarchive(ctx, nil))
			for x, err := range trash.Collect(ctx, other, trash.CollectOptions{Grace: trash.DefaultGrace}) {
				_, _ = x, err
			}
			last := kit.Append(t, kit.Must[*engine.Branch](t)(c.Branch("other")), engine.Draft{Body: body})
			if e := wantEvents(t, w, "message.appended other 3"); e.Message.ID != last.ID || e.Seq != kit.Must[uint64](t)(follow.Sequence(c)) {
				t.Errorf("%+v", e)
			}
			// By hand: the title, and a message.
			file := filepath.Join(dir, c.ID().String(), "metadata.json")
			text := strings.Replace(string(kit.Must[[]byte](t)(os.ReadFile(file))), `"title": "T"`, `"title": "By hand"`, 1)
			check(os.WriteFile(file, []byte(text), 0o600))
			if e := wantEvents(t, w, "metadata.changed"); e.Metadata.Title != "By hand" || e.Seq != 0 {
				t.Errorf("%+v, title %q", e, e.Metadata.Title)
			}
			if name == "hints" {
				edit(t, filepath.Join(dir, c.ID().String(), "messages", "branch-other", last.ID.String()+".json"))
				if e := wantEvents(t, w, "message.edited other 3"); !e.Message.Edited || !strings.Contains(string(e.Message.Stored), "edited") {
					t.Errorf("%+v", e.Message)
				}
			}
			kit.Must[engine.TrashItem](t)(other.Delete(ctx, c.ID()))
			wantEvents(t, w, "context.removed")
		})
	}
}

func bodyOfEvent(e follow.Event) ([]byte, error) { return e.Message.Body(context.Background()) }

// edit changes a message's file as an editor does that writes another one and renames it.
func edit(t *testing.T, path string) {
	t.Helper()
	text := strings.Replace(string(kit.Must[[]byte](t)(os.ReadFile(path))), `"content":"x"`, `"content":"edited"`, 1)
	if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
}

// TestWatchStore follows a store in which contexts come and go.
func TestWatchStore(t *testing.T) {
	for name, opts := range map[string][]engine.Option{"hints": nil, "polling": {polled()}} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s, dir := kit.NewStore(t, opts...)
			other := kit.Must[*engine.Store](t)(kit.Open(dir))
			defer other.Close()
			old := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{}))
			defer old.Close()
			body := []byte(`{"role":"user","content":"x"}`)
			kit.Append(t, old.Active(), engine.Draft{Body: body})
			w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
			defer w.Close()
			kit.Append(t, old.Active(), engine.Draft{Body: body})
			wantEvents(t, w, "message.appended main 1")
			added := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{Title: "new"}))
			defer added.Close()
			kit.Append(t, added.Active(), engine.Draft{Body: body})
			wantEvents(t, w, "context.created", "message.appended main 0")
			gone := kit.Must[engine.TrashItem](t)(other.Delete(ctx, added.ID()))
			wantEvents(t, w, "context.removed")
			kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, other, gone.Item))
			back := kit.Must[*engine.Context](t)(other.Context(ctx, added.ID()))
			defer back.Close()
			kit.Append(t, back.Active(), engine.Draft{Body: body})
			wantEvents(t, w, "context.created", "message.appended main 1") // and not again what it has been told
			id := legacytest.ID(500)
			if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(legacytest.Whole(id)), 0o600); err != nil {
				t.Fatal(err)
			}
			c := kit.Must[*engine.Context](t)(other.Context(ctx, uuid.MustParse(id)))
			defer c.Close()
			if e := wantEvents(t, w, "context.migrated"); e.Context != c.ID() {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestWatchMany follows more contexts than are kept open.
func TestWatchMany(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	const many = 3 * follow.MaxAwake
	var all []*engine.Context
	for range many {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		defer c.Close()
		all = append(all, c)
	}
	w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
	defer w.Close()
	for round := range 3 {
		for _, c := range all {
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
		}
		seen := map[uuid.UUID]bool{}
		n := 0
		for e, err := range w.Events(ctx) {
			if err != nil || e.Kind != follow.MessageAppended || e.Message.Position != int64(round) || seen[e.Context] {
				t.Fatal(line(e), err)
			}
			seen[e.Context] = true
			if n++; n == many {
				break
			}
		}
	}
	if w.Awake() > follow.MaxAwake {
		t.Errorf("%d contexts are open", w.Awake())
	}
}

// TestWatchLeavesNothing: no goroutine and no descriptor is left of a watcher that was closed, while events were
// awaited or not.
func TestWatchLeavesNothing(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
	begun := func() (w *follow.Watcher) {
		w = kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
		events(t, w, 1)
		return w
	}
	if err := begun().Close(); err != nil { // what is opened once and stays
		t.Fatal(err)
	}
	files, goroutines := kit.Descriptors(t), runtime.NumGoroutine()
	for range 5 {
		w := begun()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for e, err := range w.Events(ctx) {
				t.Error(e, err)
			}
		}()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		<-ended
		if err := w.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	}
	if now := kit.Descriptors(t); now > files {
		t.Errorf("%d descriptors, there were %d", now, files)
	}
	for range 1_000_000 { // one that has nothing left to do may not have ended yet
		if runtime.Gosched(); runtime.NumGoroutine() <= goroutines {
			return
		}
	}
	t.Errorf("%d goroutines, there were %d", runtime.NumGoroutine(), goroutines)
}

// TestWatchFrom: from any number on, what comes is what comes behind that number; from one that the journals do not
// have any more, or not yet, there is one resync.
func TestWatchFrom(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithFoldBytes(-1), engine.WithRetain(2))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	var all []string
	body := []byte(`{"role":"user"}`)
	for i := range 40 {
		kit.Append(t, c.Active(), engine.Draft{Body: body})
		all = append(all, fmt.Sprintf("message.appended main %d", i))
		if i%10 == 9 {
			if err := c.Log.Fold(ctx, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := kit.Must[uint64](t)(follow.Sequence(c))
	oldest := uint64(0)
	for seq := uint64(0); seq <= end+3; seq++ {
		w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, seq))
		first, e := events(t, w, 1)
		switch {
		case seq >= end:
			t.Fatalf("from %d: %q", seq, first)
		case first[0] == "resync":
			if e.Seq != end || len(e.Branches) != 1 || e.Branches[0].Messages != int64(end) {
				t.Fatalf("from %d: %+v", seq, e)
			}
			oldest = seq + 1
		default:
			wantEvents(t, w, all[seq+1:]...)
			if first[0] != all[seq] {
				t.Fatalf("from %d: %q", seq, first)
			}
		}
		w.Close()
		if seq == end-1 {
			break
		}
	}
	if oldest == 0 || oldest > end-10 {
		t.Errorf("the oldest number is %d of %d", oldest, end)
	}
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, end+1))
	defer w.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: body})
	wantEvents(t, w, "resync", "message.appended main 40")
}

// TestProcessesWatched follows what four processes append while this one forks and folds. The watcher is stopped again
// and again and another one goes on from the last number: each message is told once, and in order.
func TestProcessesWatched(t *testing.T) {
	const writers = 4
	each := 25_000
	if testing.Short() {
		each = 1_000
	}
	ctx, stop := context.WithTimeout(context.Background(), 15*time.Minute)
	defer stop()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	small := fewQueued(t)
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	small()
	ends := make(chan error, writers)
	for i := range writers {
		cmd := exec.Command(os.Args[0], c.ID().String(), fmt.Sprint("w", i), fmt.Sprint(each))
		cmd.Env = append(os.Environ(), "CTXDIR_WRITER="+dir, "CTXDIR_WRITER_FOLDS=1000000")
		cmd.Stderr = os.Stderr
		go func() { ends <- cmd.Run() }()
	}
	told, forks, begun, seq := int64(0), 0, 0, uint64(0)
	for told < int64(writers*each) {
		for e, err := range w.Events(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq <= seq {
				t.Fatalf("%s has number %d, behind %d", line(e), e.Seq, seq)
			}
			seq = e.Seq
			switch e.Kind {
			case follow.MessageAppended:
				if e.Branch != "main" || e.Message.Position != told {
					t.Fatalf("%s, wanted position %d", line(e), told)
				}
				told++
			case follow.BranchCreated:
				forks++
			default:
				t.Fatal(line(e))
			}
			if told%int64(each/5) == 1 { // something else happens beside
				if begun++; begun%2 == 0 {
					break
				}
				at := kit.Must[*engine.Branch](t)(c.Branch("main"))
				kit.Must[*engine.Branch](t)(at.Fork(ctx, fmt.Sprint("fork ", begun), told/2))
			}
			if told == int64(writers*each) {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%d told", told)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		w = kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, seq))
	}
	defer w.Close()
	for range writers {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d messages, %d forks, %d times begun", told, forks, begun)
}

// fewQueued makes the system's queues of events short, for watchers that begin before restore is called: then they
// overflow.
func fewQueued(t *testing.T) (restore func()) {
	const limit = "/proc/sys/fs/inotify/max_queued_events"
	was, err := os.ReadFile(limit)
	if err == nil {
		err = os.WriteFile(limit, []byte("8"), 0)
	}
	if err != nil {
		t.Logf("the queue of events stays as long as it is: %v", err)
		return func() {}
	}
	return func() {
		if err := os.WriteFile(limit, was, 0); err != nil {
			t.Error(err)
		}
	}
}

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
