package follow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/watch"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

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
	if n == 0 {
		return nil, last
	}
	for e, err := range w.Events(t.Context()) {
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
			// A message of several branches, and one of a single branch.
			check(main.Replace(ctx, first.ID, engine.Draft{Body: []byte(`{"role":"user","content":"z"}`)}, engine.Shared()))
			if e := wantEvents(t, w, "message.replaced main 0"); branchNames(e) != "main alt" || e.Branches[1].Messages != 3 {
				t.Errorf("branches %q: %+v", branchNames(e), e.Branches)
			}
			third := kit.Must[[]*engine.Message](t)(main.Range(ctx, 2, 3))[0].ID
			check(main.Replace(ctx, third, engine.Draft{Body: []byte(`{"role":"user","content":"z"}`)}))
			if e := wantEvents(t, w, "message.replaced main 2"); branchNames(e) != "main" {
				t.Errorf("branches %q", branchNames(e))
			}
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
			check(c.Seal(ctx))
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			kit.Must[archiving.Result](t)(archiving.Unarchive(ctx, c, nil))
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
				check(c.Flush(ctx))
				edit(t, filepath.Join(dir, c.ID().String(), "messages", "branch-alt", last.ID.String()+".json"))
				if e := wantEvents(t, w, "message.edited other 3"); !e.Message.Edited || !strings.Contains(string(e.Message.Stored), "edited") {
					t.Errorf("%+v", e.Message)
				}
			}
			kit.Must[engine.TrashItem](t)(other.Delete(ctx, c.ID()))
			wantEvents(t, w, "context.removed")
		})
	}
}

func branchNames(e follow.Event) string {
	var names []string
	for _, b := range e.Branches {
		names = append(names, b.Name)
	}
	return strings.Join(names, " ")
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

// TestWatchFrom: from any number on, what comes is what comes behind that number, whether segments or logs have it; from
// one that there is not yet, there is one resync.
func TestWatchFrom(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	type told struct {
		seq  uint64
		line string
	}
	var all []told
	tell := func(line string) { all = append(all, told{kit.Must[uint64](t)(follow.Sequence(c)), line}) }
	body := []byte(`{"role":"user"}`)
	for i := range 40 {
		at := kit.Append(t, c.Active(), engine.Draft{Body: body})
		tell(fmt.Sprintf("message.appended main %d", i))
		switch i % 10 {
		case 3:
			kit.Check(t, c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"role":"other"}`)}))
			tell(fmt.Sprintf("message.replaced main %d", i))
		case 5:
			kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, fmt.Sprint("b", i), 2))
			tell(fmt.Sprint("branch.created b", i))
		case 9:
			kit.Check(t, c.Seal(ctx))
		}
	}
	end := kit.Must[uint64](t)(follow.Sequence(c))
	for seq := range end + 1 {
		w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, seq))
		var got []told
		for e, err := range w.Pending(ctx) {
			kit.Check(t, err)
			got = append(got, told{e.Seq, line(e)})
			if m := e.Message; m != nil && (m.Unavailable != nil || !strings.Contains(string(m.Stored), `"role"`)) {
				t.Errorf("from %d: message %d: %v", seq, m.Position, m.Unavailable)
			}
		}
		want := slices.DeleteFunc(slices.Clone(all), func(x told) bool { return x.seq <= seq })
		if !slices.Equal(got, want) {
			t.Fatalf("from %d: %v, wanted %v", seq, got, want)
		}
		kit.Check(t, w.Close())
	}
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, end+1))
	defer w.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: body})
	wantEvents(t, w, "resync", "message.appended main 40")
}

// TestWatchErased: a message that was erased or cut off is told as far as it is there.
func TestWatchErased(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithSealBytes(-1))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Fill(t, c.Active(), 3)
	kit.Check(t, c.Seal(ctx))
	main := c.Current().Lines[0].ID
	kit.Check(t, c.Exclusively(ctx, func() error {
		item, err := c.Index.EraseItem(main, []int64{1})
		if err != nil {
			return err
		}
		return c.CommitDurably([]engine.Item{{Item: item}})
	}))
	for range 2 {
		w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, 0))
		_, e := events(t, w, 2)
		if m := e.Message; m == nil || m.Position != 1 || !errors.Is(m.Unavailable, engine.ErrErased) {
			t.Errorf("%+v", e)
		}
		wantEvents(t, w, "message.appended main 2")
		kit.Check(t, w.Close(), c.Seal(ctx))
	}
}

// TestProcessesWatched follows what four processes append while this one forks and seals. The watcher is stopped again
// and again and another one goes on from the last number: each message is told once, and in order.
func TestProcessesWatched(t *testing.T) {
	const writers = 4
	each := 25_000
	if testing.Short() {
		each = 1_000
	}
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	small := fewQueued(t)
	w := kit.Must[*follow.Watcher](t)(follow.WatchContext(ctx, c, follow.FromNow))
	small()
	ends := make(chan error, writers)
	for i := range writers {
		cmd := exec.Command(os.Args[0], c.ID().String(), fmt.Sprint("w", i), fmt.Sprint(each))
		cmd.Env = append(os.Environ(), "CTXDIR_WRITER="+dir, "CTXDIR_WRITER_SEALS=1000000")
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
	if string(was) == "8\n" {
		was = []byte("16384") // a test that was killed left it so
	}
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
