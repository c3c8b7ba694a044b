package adkv2

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/sessions"
	"github.com/google/uuid"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
)

// tool is the name of ADK in the store.
const tool = "adk"

// SessionService is a [session.Service] in a ctxdir store. Several processes may use the same store.
type SessionService struct{ sessions *sessions.Service }

var _ session.Service = (*SessionService)(nil)

// NewSessionService returns the sessions in a store.
func NewSessionService(store *ctxdir.Store) *SessionService {
	return &SessionService{sessions.New(store, tool)}
}

// MustOpen returns the sessions of the store in a folder, and makes the store on the first run. It panics if that fails,
// so it suits the main function of a program that keeps the store open. Others use [ctxdir.Init].
func MustOpen(dir string) *SessionService {
	store, err := ctxdir.Init(dir)
	if err != nil {
		panic(err)
	}
	return NewSessionService(store)
}

// OnBranch returns a service that works on a branch of its sessions instead of the active one: pass it to a runner to
// continue a fork. A session that it creates begins with this branch. Its Delete removes only the branch.
func (s *SessionService) OnBranch(name string) *SessionService {
	return &SessionService{s.sessions.OnBranch(name)}
}

// Fork adds a branch to a session, which begins with the events and the state of sess. It copies nothing.
func (s *SessionService) Fork(ctx context.Context, sess session.Session, branch string) error {
	stored, err := storedSessionOf(sess)
	if err != nil {
		return err
	}
	return stored.data.Fork(ctx, branch)
}

// keyOf checks and returns the key of a session.
func keyOf(app, user, id string) (sessions.Key, error) {
	if app == "" || user == "" || id == "" {
		return sessions.Key{}, fmt.Errorf("app_name, user_id and session_id are required, got %q, %q and %q", app, user, id)
	}
	return sessions.Key{App: app, User: user, ID: id}, nil
}

// Create implements [session.Service].
func (s *SessionService) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	id := req.SessionID
	if id == "" {
		id = platform.NewUUID(ctx)
	}
	key, err := keyOf(req.AppName, req.UserID, id)
	if err != nil {
		return nil, err
	}
	data, err := s.sessions.Create(ctx, key, req.State)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	return &session.CreateResponse{Session: &storedSession{data: data}}, nil
}

// Get implements [session.Service]. It reads only the events that the request selects.
func (s *SessionService) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	key, err := keyOf(req.AppName, req.UserID, req.SessionID)
	if err != nil {
		return nil, err
	}
	sess := &storedSession{}
	selected := sessions.Selection{Newest: req.NumRecentEvents, Since: req.After}
	sess.data, err = s.sessions.Get(ctx, key, selected, func(e sessions.Event, err error) error {
		event, err := decodeEvent(e, err)
		sess.events = append(sess.events, event)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get session: %w", err)
	}
	return &session.GetResponse{Session: sess}, nil
}

// decodeEvent decodes a stored event. An event that cannot be read becomes one with an error message.
func decodeEvent(e sessions.Event, failed error) (*session.Event, error) {
	if failed == nil {
		return unmarshalEvent(e.Body)
	}
	event := &session.Event{ID: e.ID, Author: e.Role, Timestamp: e.Time}
	event.ErrorCode, event.ErrorMessage = "UNAVAILABLE", failed.Error()
	return event, nil
}

// List implements [session.Service]. It opens no session: the state of a session is read when State is called.
func (s *SessionService) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if req.AppName == "" {
		return nil, errors.New("app_name is required")
	}
	found, err := s.sessions.List(ctx, req.AppName, req.UserID)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	list := &session.ListResponse{Sessions: make([]session.Session, len(found))}
	for i, data := range found {
		list.Sessions[i] = &storedSession{data: data}
	}
	return list, nil
}

// Delete implements [session.Service]. The session moves to the trash of the store for a week.
func (s *SessionService) Delete(ctx context.Context, req *session.DeleteRequest) error {
	key, err := keyOf(req.AppName, req.UserID, req.SessionID)
	if err != nil {
		return err
	}
	return s.sessions.Delete(ctx, key)
}

// AppendEvent implements [session.Service]. When it returns, the event and the state that it changes are durable. An
// error that wraps [ctxdir.ErrPosition] says that the session is stale; after any other one, append the same event again.
func (s *SessionService) AppendEvent(ctx context.Context, sess session.Session, event *session.Event) error {
	stored, err := storedSessionOf(sess)
	if err != nil {
		return err
	}
	if event == nil {
		return errors.New("event is nil")
	}
	if event.Partial {
		return nil
	}
	if event.ID == "" {
		event.ID = platform.NewUUID(ctx)
	}
	kept := *event
	kept.Actions.StateDelta = sessions.WithoutTemp(event.Actions.StateDelta)
	body, err := marshalEvent(&kept)
	if err != nil {
		return fmt.Errorf("append event: %w", err)
	}
	e := sessions.Event{ID: event.ID, Role: roleOf(event), Type: "event", Time: event.Timestamp, Body: body}
	if err := stored.data.Append(ctx, e, maps.Clone(event.Actions.StateDelta)); err != nil {
		return fmt.Errorf("append event: %w", err)
	}
	stored.add(&kept)
	return nil
}

// roleOf returns the role of an event for those who read the store. ADK has the name of the agent instead, which stays in
// the stored event.
func roleOf(event *session.Event) string {
	if event.Content != nil {
		for _, part := range event.Content.Parts {
			if part != nil && part.FunctionResponse != nil {
				return "tool"
			}
		}
	}
	if event.Author == "user" {
		return "user"
	}
	return "assistant"
}

// ContextID returns the id of the context that holds a session, for what ctxdir offers beyond ADK: rewinds, archives,
// watching.
func ContextID(app, user, session string) uuid.UUID {
	return sessions.ContextID(tool, sessions.Key{App: app, User: user, ID: session})
}
