package trpcagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/summary"
)

var _ session.Service = (*SessionService)(nil)

// SessionService keeps sessions in a store. Several processes may work on one session.
type SessionService struct {
	store      *ctxdir.Store
	summarizer summary.SessionSummarizer
	jobs       sync.WaitGroup // summaries in the background
	turn       sync.Mutex     // of these jobs
}

// Option changes a session service.
type Option func(*SessionService)

// WithSummarizer makes summaries of sessions with m. Without it there are none.
func WithSummarizer(m summary.SessionSummarizer) Option {
	return func(s *SessionService) { s.summarizer = m }
}

// NewSessionService returns a service that keeps its sessions in store. The caller closes the service, then the store.
func NewSessionService(store *ctxdir.Store, options ...Option) *SessionService {
	s := &SessionService{store: store}
	for _, o := range options {
		o(s)
	}
	return s
}

// Close waits for summaries that are being made.
func (s *SessionService) Close() error {
	s.jobs.Wait()
	return nil
}

// external returns the external id of a session, or of the state of an app or a user.
func external(parts ...string) string {
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

func contextID(k session.Key) uuid.UUID {
	return ctxdir.ContextID("", external(k.AppName, k.UserID, k.SessionID))
}

func keyOf(sess *session.Session) (session.Key, error) {
	if sess == nil {
		return session.Key{}, session.ErrNilSession
	}
	k := session.Key{AppName: sess.AppName, UserID: sess.UserID, SessionID: sess.ID}
	return k, k.CheckSessionKey()
}

func labels(k session.UserKey) map[string]string {
	return map[string]string{"tool": "trpc-agent-go", "app": k.AppName, "user": k.UserID}
}

// CreateSession creates a session. Without an id it has a new one. It fails with [ctxdir.ErrExist] if the id is taken.
func (s *SessionService) CreateSession(ctx context.Context, key session.Key, state session.StateMap,
	_ ...session.Option) (*session.Session, error) {
	if err := key.CheckUserKey(); err != nil {
		return nil, err
	}
	if key.SessionID == "" {
		key.SessionID = uuid.NewString()
	}
	m := ctxdir.Metadata{ExternalID: external(key.AppName, key.UserID, key.SessionID)}
	m.Labels = labels(session.UserKey{AppName: key.AppName, UserID: key.UserID})
	m.Labels["session"] = key.SessionID
	if err := change(setState(state))(&m); err != nil {
		return nil, err
	}
	c, err := s.store.Create(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	return s.GetSession(ctx, key)
}

// GetSession returns a session, or nil if there is none. With EventNum or EventTime it reads only the newest events, back
// to a message of the user.
func (s *SessionService) GetSession(ctx context.Context, key session.Key, options ...session.Option) (*session.Session, error) {
	o := apply(options)
	if err := errors.Join(key.CheckSessionKey(), session.ValidateGetSessionOptions(o, false)); err != nil {
		return nil, err
	}
	var sess *session.Session
	err := s.store.Use(ctx, contextID(key), func(c *ctxdir.Context) (err error) {
		sess, err = load(ctx, c, key, o)
		return err
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sess, s.addScopes(ctx, session.UserKey{AppName: key.AppName, UserID: key.UserID}, sess)
}

// ListSessions returns the sessions of a user, the most recently changed first. It opens only those of the page.
func (s *SessionService) ListSessions(ctx context.Context, user session.UserKey, options ...session.Option) ([]*session.Session, error) {
	o := apply(options)
	if err := errors.Join(user.CheckUserKey(), session.ValidateListSessionsOptions(o)); err != nil {
		return nil, err
	}
	found := []*session.Session{}
	page, row := o.ListSessionPage, -1
	for sum, err := range s.store.List(ctx, ctxdir.ListOptions{Labels: labels(user)}) {
		if err != nil {
			return nil, err
		}
		if row++; page != nil && (row < page.Offset || row >= page.Offset+page.Limit) {
			continue
		}
		err := s.store.Use(ctx, sum.ID, func(c *ctxdir.Context) error {
			sess, err := load(ctx, c, session.Key{AppName: user.AppName, UserID: user.UserID, SessionID: sum.Labels["session"]}, o)
			found = append(found, sess)
			return err
		})
		if err != nil && !errors.Is(err, ctxdir.ErrNotExist) { // if another process removed it meanwhile
			return nil, err
		}
	}
	return found, s.addScopes(ctx, user, found...)
}

// DeleteSession moves a session to the trash of the store.
func (s *SessionService) DeleteSession(ctx context.Context, key session.Key, _ ...session.Option) error {
	if err := key.CheckSessionKey(); err != nil {
		return err
	}
	if _, err := s.store.Remove(ctx, contextID(key)); !errors.Is(err, ctxdir.ErrNotExist) {
		return err
	}
	return nil
}

// AppendEvent stores an event and the state that it changes in one commit. A retry with the same event changes nothing.
// Partial events and events without content only change the state.
func (s *SessionService) AppendEvent(ctx context.Context, sess *session.Session, e *event.Event, options ...session.Option) error {
	key, err := keyOf(sess)
	if err != nil {
		return err
	}
	err = s.commit(ctx, key, func(tx *ctxdir.Tx) error {
		if e.Response != nil && !e.IsPartial && e.IsValidContent() {
			body, err := json.Marshal(e)
			if err != nil {
				return err
			}
			d := ctxdir.Draft{ID: messageID(contextID(key), e.ID), OriginID: e.ID, CreatedAt: e.Timestamp, Body: body}
			if len(e.Choices) > 0 {
				d.Role = string(e.Choices[0].Message.Role)
			}
			if err := tx.Append(tx.Metadata().ActiveBranch, d); err != nil {
				return err
			}
		}
		if len(e.StateDelta) == 0 {
			return nil
		}
		return tx.Update(change(setState(e.StateDelta)))
	})
	if err == nil {
		sess.UpdateUserSession(e, options...)
	}
	return err
}

func messageID(space uuid.UUID, id string) uuid.UUID {
	parsed, err := uuid.Parse(id)
	if err != nil && id != "" {
		return uuid.NewSHA1(space, []byte(id))
	}
	return parsed
}

// commit changes a session, if it exists.
func (s *SessionService) commit(ctx context.Context, key session.Key, f func(*ctxdir.Tx) error) error {
	err := s.store.Use(ctx, contextID(key), func(c *ctxdir.Context) error {
		_, err := c.Commit(ctx, f)
		return err
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return fmt.Errorf("session not found: %s: %w", key.SessionID, err)
	}
	return err
}

func apply(options []session.Option) *session.Options {
	o := &session.Options{}
	for _, option := range options {
		option(o)
	}
	return o
}

// load reads a session, without the state of its app and user.
func load(ctx context.Context, c *ctxdir.Context, key session.Key, o *session.Options) (*session.Session, error) {
	r, err := read(c.Metadata())
	if err != nil {
		return nil, err
	}
	sess, sum := session.NewSession(key.AppName, key.UserID, key.SessionID), c.Summary()
	sess.State, sess.Summaries, sess.CreatedAt, sess.UpdatedAt = r.State, r.Summaries, sum.CreatedAt, sum.UpdatedAt
	if o.ListSessionOnlyMeta {
		return sess, nil
	}
	b := c.Active()
	n, err := b.Len(ctx)
	if err != nil {
		return nil, err
	}
	from := int64(0)
	if !o.EventTime.IsZero() {
		from, err = b.PositionAt(ctx, o.EventTime)
	}
	if o.EventNum > 0 {
		from = max(from, n-int64(o.EventNum))
	}
	for to := n; err == nil; to, from = from, max(from-50, 0) {
		var some []event.Event
		some, err = events(ctx, b, from, to)
		sess.Events = append(some, sess.Events...)
		if from == 0 || slices.ContainsFunc(some, func(e event.Event) bool { return e.IsUserMessage() }) {
			break
		}
	}
	sess.ApplyEventFiltering(session.WithEventNum(o.EventNum), session.WithEventTime(o.EventTime))
	return sess, err
}

// events reads the events at the positions [from, to). It leaves out erased and lost ones.
func events(ctx context.Context, b *ctxdir.Branch, from, to int64) (all []event.Event, err error) {
	for m, err := range b.Messages(ctx, from, to) {
		if err != nil {
			return nil, err
		}
		if errors.Is(m.Unavailable, ctxdir.ErrErased) || errors.Is(m.Unavailable, ctxdir.ErrDamaged) {
			continue
		}
		body, err := m.Body(ctx)
		if err != nil {
			return nil, err
		}
		var e event.Event
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
