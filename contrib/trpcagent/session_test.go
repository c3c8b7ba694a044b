package trpcagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/trpcagent"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
)

var key = session.Key{AppName: "a/b", UserID: "ada", SessionID: "s:1"}

const each = 20 // events of each process

// child is what the processes of the tests do.
func child(store *ctxdir.Store, number int) error {
	s := trpcagent.NewSessionService(store)
	for i := range each {
		e := said(model.RoleUser, fmt.Sprintf("%d.%d", number, i))
		e.StateDelta = map[string][]byte{e.Choices[0].Message.Content: []byte("x")}
		sess := session.NewSession(key.AppName, key.UserID, key.SessionID)
		if err := s.AppendEvent(context.Background(), sess, e); err != nil {
			return err
		}
	}
	return s.Close()
}

func TestMain(m *testing.M) { adaptertest.Main(m, child) }

func said(role model.Role, text string) *event.Event {
	e := event.New("invocation", string(role))
	e.Response = &model.Response{Choices: []model.Choice{{Message: model.Message{Role: role, Content: text}}}}
	return e
}

func create(t *testing.T, s *trpcagent.SessionService) *session.Session {
	t.Helper()
	sess, err := s.CreateSession(t.Context(), key, session.StateMap{"k": []byte("v")})
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

func add(t *testing.T, s *trpcagent.SessionService, sess *session.Session, e *event.Event) {
	t.Helper()
	if err := s.AppendEvent(t.Context(), sess, e); err != nil {
		t.Fatal(err)
	}
}

// texts returns what the events of the stored session say.
func texts(t *testing.T, s *trpcagent.SessionService, options ...session.Option) (all []string) {
	t.Helper()
	sess, err := s.GetSession(t.Context(), key, options...)
	if err != nil || sess == nil {
		t.Fatal(sess, err)
	}
	for _, e := range sess.Events {
		all = append(all, e.Choices[0].Message.Content)
	}
	return all
}

// TestRestart: another store on the folder shows events, state and summaries of a session, also large ones.
func TestRestart(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := trpcagent.NewSessionService(store, trpcagent.WithSummarizer(summarizer{}))
	sess := create(t, s)
	large := strings.Repeat("ab<é>", 1<<20)
	add(t, s, sess, said(model.RoleUser, large))
	e := said(model.RoleAssistant, "hello")
	e.StateDelta = session.StateMap{"n": nil, "k": []byte("w")}
	add(t, s, sess, e)
	if err := s.EnqueueSummaryJob(t.Context(), sess, "", true); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.UpdateAppState(t.Context(), "a/b", session.StateMap{"app:x": []byte("1")}),
		s.UpdateUserState(t.Context(), session.UserKey{AppName: "a/b", UserID: "ada"}, session.StateMap{"y": []byte("2")})); err != nil {
		t.Fatal(err)
	}
	s = trpcagent.NewSessionService(adaptertest.Open(t, store.Info().Path))
	if got := texts(t, s); len(got) != 2 || got[0] != large || got[1] != "hello" {
		t.Errorf("%d events", len(got))
	}
	all, err := s.ListSessions(t.Context(), session.UserKey{AppName: "a/b", UserID: "ada"}, session.WithListSessionOnlyMeta())
	if err != nil || len(all) != 1 || all[0].ID != key.SessionID || len(all[0].Events) != 0 {
		t.Fatal(all, err)
	}
	if got := fmt.Sprintf("%s", all[0].State); got != "map[app:x:1 k:w n: user:y:2]" {
		t.Errorf("state %s", got)
	}
	if text, ok := s.GetSessionSummaryText(t.Context(), all[0], session.WithSummaryFilterKey("other")); !ok || text != "2 events" {
		t.Errorf("summary %q", text)
	}
}

type summarizer struct{}

func (summarizer) ShouldSummarize(*session.Session) bool { return true }
func (summarizer) SetPrompt(string)                      {}
func (summarizer) SetModel(model.Model)                  {}
func (summarizer) Metadata() map[string]any              { return nil }
func (summarizer) Summarize(_ context.Context, sess *session.Session) (string, error) {
	return fmt.Sprintf("%d events", len(sess.Events)), nil
}

// TestProcesses: events and state of two processes that append to one session at once are all there.
func TestProcesses(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := trpcagent.NewSessionService(store)
	create(t, s)
	adaptertest.Processes(t, store, 2)
	sess, err := s.GetSession(t.Context(), key)
	if err != nil || len(sess.Events) != 2*each || len(sess.State) != 2*each+1 {
		t.Errorf("%d events, %d entries of the state, %v", len(sess.Events), len(sess.State), err)
	}
}

// TestRetry: an event with the same id and content is stored once, with other content refused; partial events never are.
func TestRetry(t *testing.T) {
	s := trpcagent.NewSessionService(adaptertest.Open(t, ""))
	sess := create(t, s)
	e := said(model.RoleUser, "one")
	e.ID = "not a UUID"
	add(t, s, sess, e)
	add(t, s, sess, e)
	e.Response = said(model.RoleUser, "two").Response
	if err := s.AppendEvent(t.Context(), sess, e); !errors.Is(err, ctxdir.ErrConflict) {
		t.Errorf("another event with the id: %v", err)
	}
	partial := said(model.RoleAssistant, "on")
	partial.IsPartial = true
	add(t, s, sess, partial)
	if got := texts(t, s); len(got) != 1 {
		t.Errorf("events %q", got)
	}
}

// TestDeleteAndCreate: a session that another handle deleted is gone; one created anew has none of the old events.
func TestDeleteAndCreate(t *testing.T) {
	store := adaptertest.Open(t, "")
	s, other := trpcagent.NewSessionService(store), trpcagent.NewSessionService(adaptertest.Open(t, store.Info().Path))
	sess := create(t, s)
	if _, err := s.CreateSession(t.Context(), key, nil); !errors.Is(err, ctxdir.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	add(t, s, sess, said(model.RoleUser, "old"))
	if err := errors.Join(other.DeleteSession(t.Context(), key), other.DeleteSession(t.Context(), key)); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEvent(t.Context(), sess, said(model.RoleUser, "lost")); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("appended to a deleted session: %v", err)
	}
	create(t, other)
	add(t, s, sess, said(model.RoleUser, "new"))
	if got := texts(t, other); len(got) != 1 || got[0] != "new" {
		t.Errorf("events %q", got)
	}
}

// TestWindow: EventNum and EventTime give what the framework's filter gives for the whole session.
func TestWindow(t *testing.T) {
	s := trpcagent.NewSessionService(adaptertest.Open(t, ""))
	sess := create(t, s)
	start := time.Now()
	for i := range 150 {
		role := model.RoleAssistant
		if i == 3 || i == 20 || i == 140 {
			role = model.RoleUser
		}
		e := said(role, fmt.Sprint(i))
		e.Timestamp = start.Add(time.Duration(i) * time.Second)
		add(t, s, sess, e)
	}
	for _, o := range []session.Option{
		session.WithEventNum(5), session.WithEventNum(12), session.WithEventNum(1000), session.WithEventNum(0),
		session.WithEventTime(start.Add(30 * time.Second)), session.WithEventTime(start.Add(time.Hour)), session.WithEventTime(start),
	} {
		whole := session.Session{Events: sess.GetEvents()}
		whole.ApplyEventFiltering(o)
		var want []string
		for _, e := range whole.Events {
			want = append(want, e.Choices[0].Message.Content)
		}
		if got := texts(t, s, o); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("events %v, want %v", got, want)
		}
	}
}
