package sessions

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Session is a session as it was when it was read, with the events that were appended to it since. It is stale when
// another Session has appended meanwhile. Several goroutines may use it.
type Session struct {
	Key
	service *Service

	mu      sync.Mutex
	updated time.Time
	state   map[string]any // nil until it is read; keys have the prefixes of their scopes
	branch  string
	next    int64     // the position of the next event
	created time.Time // tells the session from a later one of the same key
}

// Updated returns the time of the newest event.
func (sess *Session) Updated() time.Time {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return sess.updated
}

// State returns a copy of the state of session, user and application. Keys of the last two have their prefixes.
func (sess *Session) State(ctx context.Context) (map[string]any, error) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	err := sess.read(ctx)
	return maps.Clone(sess.state), err
}

// Set changes a value in this Session only; an event stores values.
func (sess *Session) Set(ctx context.Context, key string, value any) error {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	err := sess.read(ctx)
	if err == nil {
		sess.state[key] = value
	}
	return err
}

// read reads the session, unless that has happened. The caller holds mu, or the only pointer.
func (sess *Session) read(ctx context.Context) error {
	if sess.state != nil {
		return nil
	}
	s := sess.service
	return s.store.Use(ctx, s.contextID(sess.Key), func(c *ctxdir.Context) error { return sess.readFrom(ctx, c) })
}

// readFrom is read with the context of the session.
func (sess *Session) readFrom(ctx context.Context, c *ctxdir.Context) error {
	s, state := sess.service, map[string]any{}
	for {
		m := c.Metadata()
		sess.branch, sess.created = s.branch, m.CreatedAt
		if s.branch == "" {
			sess.branch = m.ActiveBranch
		}
		if sess.updated.IsZero() {
			sess.updated = m.UpdatedAt
		}
		b, err := c.Branch(sess.branch)
		if err != nil {
			return err
		}
		if sess.next, err = b.Len(ctx); err != nil {
			return err
		}
		if m.Branch(sess.branch) == nil || c.Metadata().Revision != m.Revision { // an event has changed the state meanwhile
			continue
		}
		if err := decode(m.Branch(sess.branch).State, "", state); err != nil {
			return err
		}
		if err := s.readShared(ctx, sess.Key, state); err != nil {
			return err
		}
		sess.state = state
		return nil
	}
}

// Append appends an event, and changes state in all scopes. An error that wraps [ctxdir.ErrPosition] says that the
// session is stale: get it again. After any other error, a retry with the same event is safe.
func (sess *Session) Append(ctx context.Context, e Event, delta map[string]any) error {
	scopes, err := split(delta)
	if err != nil {
		return err
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if err := sess.read(ctx); err != nil {
		return err
	}
	s, id := sess.service, sess.service.contextID(sess.Key)
	draft := ctxdir.Draft{OriginID: e.ID, Role: e.Role, Type: e.Type, CreatedAt: e.Time, Body: e.Body}
	if e.ID != "" {
		draft.ID = uuid.NewSHA1(id, []byte(e.ID))
	}
	err = s.store.Use(ctx, id, func(c *ctxdir.Context) error {
		_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
			if !tx.Metadata().CreatedAt.Equal(sess.created) {
				return fmt.Errorf("session %q was deleted and created again: %w", sess.ID, ctxdir.ErrPosition)
			}
			before, err := tx.Len(sess.branch)
			if err != nil {
				return err
			}
			if err := tx.Append(sess.branch, draft); err != nil {
				return err
			}
			if after, err := tx.Len(sess.branch); err != nil || after == before {
				return err // a retry: the event is there, and its state was too
			}
			return sess.setState(ctx, tx, scopes)
		}, ctxdir.WriteOptions{Position: &sess.next})
		return err
	})
	if err != nil {
		return err
	}
	sess.next++
	sess.updated = e.Time
	maps.Copy(sess.state, delta)
	return nil
}

// setState changes the state: that of the session in a commit, that of user and application before it.
func (sess *Session) setState(ctx context.Context, tx *ctxdir.Tx, scopes scopes) error {
	if err := sess.service.setShared(ctx, sess.Key, scopes); err != nil || len(scopes.session) == 0 {
		return err
	}
	return tx.Update(func(m *ctxdir.Metadata) (err error) {
		b := m.Branch(sess.branch)
		if b == nil {
			return fmt.Errorf("branch %q: %w", sess.branch, ctxdir.ErrNotExist)
		}
		b.State, err = merge(b.State, scopes.session)
		return err
	})
}

// Fork adds a branch that begins with the events and the state of the session. It copies nothing. It fails with
// [ctxdir.ErrExist], and with [ctxdir.ErrPosition] if the session is stale.
func (sess *Session) Fork(ctx context.Context, name string) error {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if err := sess.read(ctx); err != nil {
		return err
	}
	return sess.service.store.Use(ctx, sess.service.contextID(sess.Key), func(c *ctxdir.Context) error {
		_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
			n, err := tx.Len(sess.branch)
			if err == nil && n != sess.next {
				err = fmt.Errorf("session %q has %d events, not %d: %w", sess.ID, n, sess.next, ctxdir.ErrPosition)
			}
			if err != nil {
				return err
			}
			return tx.Fork(name, sess.branch, n)
		})
		return err
	})
}
