package trpcagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/log"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
)

// stateKind is the kind of the contexts that hold the state of an app or a user.
const stateKind = "trpc-agent-state"

// record is the state of a context.
type record struct {
	State     session.StateMap            `json:"state"`
	Summaries map[string]*session.Summary `json:"summaries"`
}

func read(m *ctxdir.Metadata) (record, error) {
	r := record{session.StateMap{}, map[string]*session.Summary{}}
	if len(m.State) == 0 {
		return r, nil
	}
	return r, json.Unmarshal(m.State, &r)
}

// change returns an update of the metadata that changes the record.
func change(f func(r *record)) func(*ctxdir.Metadata) error {
	return func(m *ctxdir.Metadata) error {
		r, err := read(m)
		if err != nil {
			return err
		}
		f(&r)
		m.State, err = json.Marshal(r)
		return err
	}
}

func setState(delta session.StateMap) func(*record) {
	return func(r *record) { session.ApplyEventStateDeltaMap(r.State, &event.Event{StateDelta: delta}) }
}

// addScopes adds the state of the app and the user to sessions.
func (s *SessionService) addScopes(ctx context.Context, user session.UserKey, sessions ...*session.Session) error {
	ofApp, err := s.ListAppStates(ctx, user.AppName)
	if err != nil {
		return err
	}
	ofUser, err := s.ListUserStates(ctx, user)
	for _, sess := range sessions {
		for k, v := range ofApp {
			sess.SetState(session.StateAppPrefix+k, v)
		}
		for k, v := range ofUser {
			sess.SetState(session.StateUserPrefix+k, v)
		}
	}
	return err
}

func (s *SessionService) listStates(ctx context.Context, scope string) (session.StateMap, error) {
	state := session.StateMap{}
	err := s.store.Use(ctx, ctxdir.ContextID(stateKind, scope), func(c *ctxdir.Context) error {
		r, err := read(c.Metadata())
		state = r.State
		return err
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		err = nil
	}
	return state, err
}

func (s *SessionService) updateStates(ctx context.Context, scope string, f func(*record)) error {
	m := ctxdir.Metadata{Kind: stateKind, ExternalID: scope}
	return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error { return c.Update(ctx, change(f)) })
}

// trim removes a prefix from keys. Keys with another prefix belong to another scope.
func trim(state session.StateMap, prefix string, others ...string) (session.StateMap, error) {
	trimmed := session.StateMap{}
	for k, v := range state {
		if slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(k, other) }) {
			return nil, fmt.Errorf("state %q is not allowed here: keys that begin with one of %q belong to another scope", k, others)
		}
		trimmed[strings.TrimPrefix(k, prefix)] = v
	}
	return trimmed, nil
}

func checkApp(app string) error {
	if app == "" {
		return session.ErrAppNameRequired
	}
	return nil
}

// UpdateAppState sets entries of the state of an app.
func (s *SessionService) UpdateAppState(ctx context.Context, app string, state session.StateMap) error {
	delta, _ := trim(state, session.StateAppPrefix)
	if err := checkApp(app); err != nil {
		return err
	}
	return s.updateStates(ctx, external(app), setState(delta))
}

// DeleteAppState removes an entry from the state of an app.
func (s *SessionService) DeleteAppState(ctx context.Context, app, key string) error {
	if err := checkApp(app); err != nil {
		return err
	}
	key = strings.TrimPrefix(key, session.StateAppPrefix)
	return s.updateStates(ctx, external(app), func(r *record) { delete(r.State, key) })
}

// ListAppStates returns the state of an app.
func (s *SessionService) ListAppStates(ctx context.Context, app string) (session.StateMap, error) {
	if err := checkApp(app); err != nil {
		return nil, err
	}
	return s.listStates(ctx, external(app))
}

// UpdateUserState sets entries of the state of a user.
func (s *SessionService) UpdateUserState(ctx context.Context, user session.UserKey, state session.StateMap) error {
	delta, err := trim(state, session.StateUserPrefix, session.StateAppPrefix, session.StateTempPrefix)
	if err := errors.Join(user.CheckUserKey(), err); err != nil {
		return err
	}
	return s.updateStates(ctx, external(user.AppName, user.UserID), setState(delta))
}

// DeleteUserState removes an entry from the state of a user.
func (s *SessionService) DeleteUserState(ctx context.Context, user session.UserKey, key string) error {
	if err := user.CheckUserKey(); err != nil {
		return err
	}
	key = strings.TrimPrefix(key, session.StateUserPrefix)
	return s.updateStates(ctx, external(user.AppName, user.UserID), func(r *record) { delete(r.State, key) })
}

// ListUserStates returns the state of a user.
func (s *SessionService) ListUserStates(ctx context.Context, user session.UserKey) (session.StateMap, error) {
	if err := user.CheckUserKey(); err != nil {
		return nil, err
	}
	return s.listStates(ctx, external(user.AppName, user.UserID))
}

// UpdateSessionState sets entries of the state of a session.
func (s *SessionService) UpdateSessionState(ctx context.Context, key session.Key, state session.StateMap) error {
	delta, err := trim(state, "", session.StateAppPrefix, session.StateUserPrefix)
	if err := errors.Join(key.CheckSessionKey(), err); err != nil {
		return err
	}
	return s.commit(ctx, key, func(tx *ctxdir.Tx) error { return tx.Update(change(setState(delta))) })
}

// CreateSessionSummary makes a summary of the events since the last summary, and stores it in the session.
func (s *SessionService) CreateSessionSummary(ctx context.Context, sess *session.Session, filter string, force bool) error {
	key, err := keyOf(sess)
	if s.summarizer == nil || err != nil {
		return err
	}
	sess.SummariesMu.RLock()
	was := sess.Summaries[filter].Clone()
	sess.SummariesMu.RUnlock()
	part := session.NewSession(key.AppName, key.UserID, key.SessionID+":"+filter, session.WithSessionCreatedAt(sess.CreatedAt))
	if was != nil {
		said := model.Choice{Message: model.NewSystemMessage(was.Summary)}
		part.Events = append(part.Events, event.Event{Author: "system", Response: &model.Response{Choices: []model.Choice{said}}})
	}
	var last *event.Event
	for _, e := range sess.GetEvents() {
		if e.Timestamp.After(was.CutoffTime()) && e.Filter(filter) {
			part.Events, last = append(part.Events, e), &e
		}
	}
	if last == nil || !force && !s.summarizer.ShouldSummarize(part) {
		return nil
	}
	text, err := s.summarizer.Summarize(ctx, part)
	if err != nil || text == "" {
		return err
	}
	made := &session.Summary{Summary: text, UpdatedAt: last.Timestamp.UTC()}
	made.Boundary = session.NewSummaryBoundaryWithEventID(filter, last.Timestamp, last.ID)
	err = s.commit(ctx, key, func(tx *ctxdir.Tx) error {
		return tx.Update(change(func(r *record) { r.Summaries[filter] = made }))
	})
	if err == nil {
		sess.SummariesMu.Lock()
		defer sess.SummariesMu.Unlock()
		if sess.Summaries == nil {
			sess.Summaries = map[string]*session.Summary{}
		}
		sess.Summaries[filter] = made
	}
	return err
}

// EnqueueSummaryJob makes summaries in the background, one after the other: of the filter, and of the whole session.
func (s *SessionService) EnqueueSummaryJob(ctx context.Context, sess *session.Session, filter string, force bool) error {
	if _, err := keyOf(sess); s.summarizer == nil || err != nil {
		return err
	}
	s.jobs.Go(func() {
		s.turn.Lock()
		defer s.turn.Unlock()
		for _, f := range slices.Compact([]string{filter, session.SummaryFilterKeyAllContents}) {
			if err := s.CreateSessionSummary(context.WithoutCancel(ctx), sess, f, force); err != nil {
				log.Warnf("summary of session %s: %v", sess.ID, err)
			}
		}
	})
	return nil
}

// GetSessionSummaryText returns a summary that the session has: that of the filter, or else that of the whole session.
func (s *SessionService) GetSessionSummaryText(_ context.Context, sess *session.Session, options ...session.SummaryOption) (string, bool) {
	if _, err := keyOf(sess); err != nil {
		return "", false
	}
	var o session.SummaryOptions
	for _, option := range options {
		option(&o)
	}
	sess.SummariesMu.RLock()
	defer sess.SummariesMu.RUnlock()
	for _, f := range []string{o.FilterKey, session.SummaryFilterKeyAllContents} {
		if sum := sess.Summaries[f]; sum != nil && sum.Summary != "" {
			return sum.Summary, true
		}
	}
	return "", false
}
