package adkv2_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adkv2"
	"github.com/google/uuid"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

func create(t *testing.T, s session.Service, state map[string]any) session.Session {
	t.Helper()
	r, err := s.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ada", SessionID: "s1", State: state})
	if err != nil {
		t.Fatal(err)
	}
	return r.Session
}

func get(t *testing.T, s session.Service) session.Session {
	t.Helper()
	r, err := s.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return r.Session
}

// event returns an event that sets the state "last" to its id, in each scope.
func event(id string) *session.Event {
	e := &session.Event{ID: id, Author: "user", InvocationID: "i", Timestamp: time.Now()}
	e.Content = genai.NewContentFromText("a < b & c: "+id, "user")
	e.Actions.StateDelta = map[string]any{"last": id, "user:last": id, "app:last": id, "temp:last": id}
	return e
}

// wantSession compares the ids of events, and the state "last" in all scopes.
func wantSession(t *testing.T, s session.Session, last string, ids ...string) {
	t.Helper()
	var got []string
	for e := range s.Events().All() {
		got = append(got, e.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("events %v, not %v", got, ids)
	}
	for _, key := range []string{"last", "user:last", "app:last"} {
		if v, err := s.State().Get(key); v != last {
			t.Errorf("%s is %v, not %q (%v)", key, v, last, err)
		}
	}
	if v, err := s.State().Get("temp:last"); !errors.Is(err, session.ErrStateKeyNotExist) {
		t.Errorf("temp:last is %v, %v", v, err)
	}
}

// TestRestart: another process sees events, and state in all scopes; a selection reads only what it selects.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s := adkv2.NewSessionService(newStore(t, dir))
	sess := create(t, s, map[string]any{"nothing": nil})
	var middle time.Time
	for i := range 5 {
		e := event(fmt.Sprint("e", i))
		if i == 2 {
			middle = e.Timestamp
		}
		if err := s.AppendEvent(t.Context(), sess, e); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := sess.State().Get("temp:last"); v != "e4" || err != nil {
		t.Errorf("the invocation itself sees temp:last = %v, %v", v, err)
	}
	other := adkv2.NewSessionService(newStore(t, dir))
	again := get(t, other)
	wantSession(t, again, "e4", "e0", "e1", "e2", "e3", "e4")
	if v, err := again.State().Get("nothing"); v != nil || err != nil {
		t.Errorf("a state of null is %v, %v", v, err)
	}
	if got := again.Events().At(0).Content.Parts[0].Text; got != "a < b & c: e0" {
		t.Errorf("the text is %q", got)
	}
	for _, want := range []struct {
		newest int
		after  time.Time
		ids    []string
	}{{2, time.Time{}, []string{"e3", "e4"}}, {0, middle, []string{"e2", "e3", "e4"}}, {1, middle, []string{"e4"}}, {9, time.Time{},
		[]string{"e0", "e1", "e2", "e3", "e4"}}} {
		r, err := other.Get(t.Context(), &session.GetRequest{
			AppName: "app", UserID: "ada", SessionID: "s1", NumRecentEvents: want.newest, After: want.after,
		})
		if err != nil {
			t.Fatal(err)
		}
		wantSession(t, r.Session, "e4", want.ids...)
	}
	listed, err := other.List(t.Context(), &session.ListRequest{AppName: "app"})
	if err != nil || len(listed.Sessions) != 1 {
		t.Fatalf("%v, %v", listed, err)
	}
	wantSession(t, listed.Sessions[0], "e4")
	if err := other.AppendEvent(t.Context(), listed.Sessions[0], event("e5")); err != nil {
		t.Errorf("append to a listed session: %v", err)
	}
}

// TestStale: a session that another one has overtaken is refused, and neither event nor state is stored.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	s, other := adkv2.NewSessionService(newStore(t, dir)), adkv2.NewSessionService(newStore(t, dir))
	first := create(t, s, nil)
	second := get(t, other)
	if err := other.AppendEvent(t.Context(), second, event("e1")); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEvent(t.Context(), first, event("e2")); !errors.Is(err, ctxdir.ErrPosition) {
		t.Errorf("a stale session: %v", err)
	}
	if first.Events().Len() != 0 {
		t.Error("the stale session has the refused event")
	}
	wantSession(t, get(t, s), "e1", "e1")
}

// TestRetry: a second append of the same event does nothing, even when later events have changed the state.
func TestRetry(t *testing.T) {
	dir := t.TempDir()
	s := adkv2.NewSessionService(newStore(t, dir))
	sess := create(t, s, nil)
	before := get(t, s) // as a process that died before it saw the acknowledgement of e1
	e1, e2 := event("e1"), event("e2")
	for _, e := range []*session.Event{e1, e2} {
		if err := s.AppendEvent(t.Context(), sess, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendEvent(t.Context(), before, e1); err != nil {
		t.Errorf("the retry: %v", err)
	}
	changed := *e1
	changed.Author = "somebody else"
	if err := s.AppendEvent(t.Context(), get(t, s), &changed); !errors.Is(err, ctxdir.ErrConflict) && !errors.Is(err, ctxdir.ErrPosition) {
		t.Errorf("another event with the same id: %v", err)
	}
	wantSession(t, get(t, s), "e2", "e1", "e2")
}

// TestRecreated: a session that was deleted and created again behind a handle is another session.
func TestRecreated(t *testing.T) {
	dir := t.TempDir()
	s, other := adkv2.NewSessionService(newStore(t, dir)), adkv2.NewSessionService(newStore(t, dir))
	old := create(t, s, nil)
	if err := other.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "ada", SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEvent(t.Context(), old, event("e1")); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("append to a deleted session: %v", err)
	}
	again := create(t, other, map[string]any{"last": "new", "user:last": "new", "app:last": "new"})
	if err := s.AppendEvent(t.Context(), old, event("e1")); !errors.Is(err, ctxdir.ErrPosition) {
		t.Errorf("append to a session that was created again: %v", err)
	}
	wantSession(t, get(t, s), "new")
	if err := other.AppendEvent(t.Context(), again, event("e2")); err != nil {
		t.Error(err)
	}
	wantSession(t, get(t, s), "e2", "e2")
}

// TestFork: a branch begins with events and state of the session, and both continue apart.
func TestFork(t *testing.T) {
	s := adkv2.NewSessionService(newStore(t, t.TempDir()))
	sess := create(t, s, nil)
	own := func(id string) *session.Event {
		e := event(id)
		e.Actions.StateDelta = map[string]any{"last": id}
		return e
	}
	if err := s.AppendEvent(t.Context(), sess, event("e1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Fork(t.Context(), sess, "alt"); err != nil {
		t.Fatal(err)
	}
	alt := s.OnBranch("alt")
	branched := get(t, alt)
	wantSession(t, branched, "e1", "e1")
	for _, err := range []error{s.AppendEvent(t.Context(), sess, own("e2")), alt.AppendEvent(t.Context(), branched, own("e3"))} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, want := range []struct {
		s    session.Service
		last string
	}{{s, "e2"}, {alt, "e3"}} {
		got := get(t, want.s)
		if v, err := got.State().Get("last"); v != want.last || err != nil || got.Events().Len() != 2 || got.Events().At(1).ID != want.last {
			t.Errorf("last is %v, not %s (%v)", v, want.last, err)
		}
	}
	if err := s.Fork(t.Context(), sess, "alt"); !errors.Is(err, ctxdir.ErrExist) {
		t.Errorf("a second fork of that name: %v", err)
	}
	if err := alt.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "ada", SessionID: "s1"}); err != nil {
		t.Error(err)
	}
	get(t, s)
}

// TestRoles: events have the roles by which people and programs look for messages, and agents keep their names.
func TestRoles(t *testing.T) {
	store := newStore(t, t.TempDir())
	s := adkv2.NewSessionService(store)
	sess := create(t, s, nil)
	events := []struct {
		author, role string
		content      *genai.Content
	}{
		{"user", "user", genai.NewContentFromText("Is it raining?", genai.RoleUser)},
		{"weather_agent", "assistant", genai.NewContentFromFunctionCall("look", nil, genai.RoleModel)},
		{"weather_agent", "tool", genai.NewContentFromFunctionResponse("look", nil, genai.RoleUser)},
		{"weather_agent", "assistant", genai.NewContentFromText("No.", genai.RoleModel)},
		{"other agent", "assistant", nil},
	}
	for i, e := range events {
		made := event(fmt.Sprint("e", i))
		made.Author, made.Content = e.author, e.content
		if err := s.AppendEvent(t.Context(), sess, made); err != nil {
			t.Fatal(err)
		}
	}
	got := get(t, s).Events()
	id, err := store.Resolve("adk/app/ada/s1")
	if err != nil {
		t.Fatal(err)
	}
	err = store.Use(t.Context(), id, func(c *ctxdir.Context) error {
		for m, err := range c.Active().Messages(t.Context(), 0, ctxdir.End) {
			if err != nil {
				return err
			}
			if e := events[m.Position]; m.Role != e.role || got.At(int(m.Position)).Author != e.author {
				t.Errorf("event %d: role %q, author %q, want %q and %q", m.Position, m.Role, got.At(int(m.Position)).Author, e.role, e.author)
			}
		}
		return nil
	})
	if err != nil || got.Len() != len(events) {
		t.Errorf("%d events, %v", got.Len(), err)
	}
}

// TestCreateOnBranch: a runner on a branch can begin a session.
func TestCreateOnBranch(t *testing.T) {
	s := adkv2.NewSessionService(newStore(t, t.TempDir()))
	s = s.OnBranch("alt")
	sess := create(t, s, map[string]any{"last": "none"})
	if err := s.AppendEvent(t.Context(), sess, event("e1")); err != nil {
		t.Fatal(err)
	}
	wantSession(t, get(t, s), "e1", "e1")
}

// TestUnavailable: an event that was erased leaves the others, and says so.
func TestUnavailable(t *testing.T) {
	store := newStore(t, t.TempDir())
	s := adkv2.NewSessionService(store)
	sess := create(t, s, nil)
	for _, id := range []string{"e1", "e2"} {
		if err := s.AppendEvent(t.Context(), sess, event(id)); err != nil {
			t.Fatal(err)
		}
	}
	id, err := store.Resolve("adk/app/ada/s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Erase(t.Context(), id, []uuid.UUID{uuid.NewSHA1(id, []byte("e1"))}, ctxdir.EraseOptions{}); err != nil {
		t.Fatal(err)
	}
	events := get(t, s).Events()
	if events.Len() != 2 || events.At(0).ErrorCode != "UNAVAILABLE" || events.At(0).Content != nil || events.At(1).ID != "e2" {
		t.Errorf("events: %+v, %+v", events.At(0), events.At(1))
	}
}

// TestProcesses: several processes and goroutines append to one session and to the shared states. Each event is there
// once, and the states have every key.
func TestProcesses(t *testing.T) {
	const processes, goroutines, each = 3, 2, 5
	if dir := os.Getenv("ADK_TEST_STORE"); dir != "" {
		s := adkv2.NewSessionService(newStore(t, dir))
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := range each {
					appendUntilDone(t, s, fmt.Sprintf("%s-%d-%d", os.Getenv("ADK_TEST_NAME"), g, i))
				}
			})
		}
		all.Wait()
		return
	}
	dir := t.TempDir()
	s := adkv2.NewSessionService(newStore(t, dir))
	create(t, s, nil)
	var all sync.WaitGroup
	for p := range processes {
		all.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
			c.Env = append(os.Environ(), "ADK_TEST_STORE="+dir, fmt.Sprint("ADK_TEST_NAME=p", p))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	sess := get(t, s)
	if n := sess.Events().Len(); n != processes*goroutines*each {
		t.Errorf("%d events", n)
	}
	for e := range sess.Events().All() {
		for _, scope := range []string{"", "user:", "app:"} {
			if v, err := sess.State().Get(scope + e.ID); v != true {
				t.Errorf("%s%s is %v, %v", scope, e.ID, v, err)
			}
		}
	}
}

// appendUntilDone appends an event, and gets the session again while others are faster.
func appendUntilDone(t *testing.T, s session.Service, id string) {
	e := event(id)
	e.Actions.StateDelta = map[string]any{id: true, "user:" + id: true, "app:" + id: true}
	for {
		err := s.AppendEvent(t.Context(), get(t, s), e)
		if err == nil {
			return
		}
		if !errors.Is(err, ctxdir.ErrPosition) {
			t.Error(err)
			return
		}
	}
}
