package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
)

// Create makes a session with a state. It fails with [ctxdir.ErrExist].
func (s *Service) Create(ctx context.Context, k Key, state map[string]any) (*Session, error) {
	scopes, err := split(state)
	if err != nil {
		return nil, err
	}
	if len(scopes.app)+len(scopes.user) > 0 { // they must not change for a session that exists
		if err := s.isFree(ctx, k); err != nil {
			return nil, err
		}
		if err := s.setShared(ctx, k, scopes); err != nil {
			return nil, err
		}
	}
	first := ctxdir.BranchMetadata{}
	if first.State, err = merge(nil, scopes.session); err != nil {
		return nil, err
	}
	c, err := s.store.Create(ctx, ctxdir.Metadata{
		Title:      k.App + "/" + k.User + "/" + k.ID,
		ExternalID: externalID(s.tool, k.App, k.User, k.ID), Branches: []ctxdir.BranchMetadata{first},
		Labels: map[string]string{"tool": s.tool, "app": k.App, "user": k.User},
	})
	if errors.Is(err, ctxdir.ErrExist) {
		return nil, existing(k)
	}
	if err != nil {
		return nil, err
	}
	sess := &Session{Key: k, service: s}
	if err = s.nameBranch(ctx, c); err == nil {
		err = sess.readFrom(ctx, c)
	}
	if err = errors.Join(err, c.Close()); err != nil {
		_, removed := s.store.Remove(ctx, c.ID())
		return nil, errors.Join(err, removed)
	}
	return sess, nil
}

// nameBranch gives the branch of a new session the name that the service works on.
func (s *Service) nameBranch(ctx context.Context, c *ctxdir.Context) error {
	name := c.Metadata().ActiveBranch
	if s.branch == "" || s.branch == name {
		return nil
	}
	_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.RenameBranch(name, s.branch) })
	return err
}

func existing(k Key) error {
	return fmt.Errorf("session %q of user %q: %w", k.ID, k.User, ctxdir.ErrExist)
}

// isFree fails with [ctxdir.ErrExist] if there is a session of this key.
func (s *Service) isFree(ctx context.Context, k Key) error {
	err := s.store.Use(ctx, s.contextID(k), func(*ctxdir.Context) error { return existing(k) })
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil
	}
	return err
}

// Selection says which events to read. The zero value is all of them.
type Selection struct {
	Newest int       // at most so many; 0 for all
	Since  time.Time // of this time or later
}

// Get returns a session, and calls each with the events that sel selects, in order. err says that an event is
// unavailable, for instance because it was erased. Get fails with [ctxdir.ErrNotExist], and with the error of each.
func (s *Service) Get(ctx context.Context, k Key, sel Selection, each func(e Event, err error) error) (*Session, error) {
	sess := &Session{Key: k, service: s}
	if err := sess.read(ctx); err != nil {
		return nil, err
	}
	err := s.store.Use(ctx, s.contextID(k), func(c *ctxdir.Context) error {
		b, err := c.Branch(sess.branch)
		if err != nil {
			return err
		}
		from := int64(0)
		if !sel.Since.IsZero() {
			if from, err = b.PositionAt(ctx, sel.Since); err != nil {
				return err
			}
		}
		if sel.Newest > 0 {
			from = max(from, sess.next-int64(sel.Newest))
		}
		for m, err := range b.Messages(ctx, from, sess.next) {
			if err != nil {
				return err
			}
			e := Event{ID: cmp.Or(m.OriginID, m.ID.String()), Role: m.Role, Type: m.Type, Time: m.CreatedAt}
			e.Body, err = m.Body(ctx)
			if err := each(e, err); err != nil {
				return err
			}
			sess.updated = e.Time
		}
		return nil
	})
	return sess, err
}

// List returns the sessions of an application, or of one of its users, most recently changed first. It opens none of
// them: a session reads its state when it is needed.
func (s *Service) List(ctx context.Context, app, user string) ([]*Session, error) {
	labels := map[string]string{"tool": s.tool, "app": app}
	if user != "" {
		labels["user"] = user
	}
	var all []*Session
	for sum, err := range s.store.List(ctx, ctxdir.ListOptions{Labels: labels}) {
		if err != nil {
			return nil, err
		}
		names, err := namesOf(sum.ExternalID)
		if err != nil {
			return nil, err
		}
		if len(names) == 4 { // people can add the labels to other contexts too
			all = append(all, &Session{Key: Key{names[1], names[2], names[3]}, service: s, updated: sum.UpdatedAt})
		}
	}
	return all, nil
}

// Delete moves a session to the trash of the store, or removes the branch that the service works on, unless it is the only
// one. It does nothing if there is no such session.
func (s *Service) Delete(ctx context.Context, k Key) error {
	whole := s.branch == ""
	var err error
	if !whole {
		err = s.store.Use(ctx, s.contextID(k), func(c *ctxdir.Context) error {
			if all := c.Metadata().Branches; len(all) == 1 && all[0].Name == s.branch {
				whole = true
				return nil
			}
			b, err := c.Branch(s.branch)
			if err != nil {
				return err
			}
			return b.Remove(ctx)
		})
	}
	if err == nil && whole {
		_, err = s.store.Remove(ctx, s.contextID(k))
	}
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil
	}
	return err
}
