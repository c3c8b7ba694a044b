package genkit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/core"
	"github.com/google/uuid"
)

var (
	_ exp.SessionStore[any]  = (*Store[any])(nil)
	_ exp.SnapshotSubscriber = (*Store[any])(nil)
)

const (
	// Kind is the kind of the contexts that hold sessions. The external id is that of the session.
	Kind = "genkit-session"
	// IndexKind is the kind of the context that says to which session a snapshot belongs.
	IndexKind = "genkit-snapshots"
)

// snapshotType is the type of the messages that are snapshots.
const snapshotType = "snapshot"

// Store keeps sessions with a custom state of the type State in a store. Several processes may use it.
type Store[State any] struct {
	store *ctxdir.Store
}

// NewStore returns a store that keeps its sessions in store. The caller closes store.
func NewStore[State any](store *ctxdir.Store) *Store[State] { return &Store[State]{store} }

// GetSnapshot returns a snapshot, or nil if there is none.
func (s *Store[State]) GetSnapshot(ctx context.Context, id string) (*exp.SessionSnapshot[State], error) {
	snapshot, _, err := s.read(ctx, id)
	return snapshot, err
}

// GetLatestSnapshot returns the last snapshot on the active branch of a session, or nil if there is none. That is the most
// recently created one of the session, unless somebody made another branch the active one.
func (s *Store[State]) GetLatestSnapshot(ctx context.Context, session string) (snapshot *exp.SessionSnapshot[State], err error) {
	if session == "" {
		return nil, core.NewError(core.INVALID_ARGUMENT, "the session id is empty")
	}
	err = s.use(ctx, session, func(c *ctxdir.Context) error {
		m, err := latest(ctx, c)
		if m != nil {
			snapshot, _, err = load[State](ctx, c, m)
		}
		return err
	})
	return snapshot, err
}

// use calls f with the context of a session, if it exists.
func (s *Store[State]) use(ctx context.Context, session string, f func(*ctxdir.Context) error) error {
	err := s.store.Use(ctx, ctxdir.ContextID(Kind, session), f)
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil
	}
	return err
}

// read returns a snapshot and the body of its message, or nil if there is none.
func (s *Store[State]) read(ctx context.Context, id string) (snapshot *exp.SessionSnapshot[State], body []byte, err error) {
	session, err := s.sessionOf(ctx, id)
	if session == "" || err != nil {
		return nil, nil, err
	}
	err = s.use(ctx, session, func(c *ctxdir.Context) error {
		_, m, err := snapshotOf(ctx, c, id)
		if m != nil {
			snapshot, body, err = load[State](ctx, c, m)
		}
		return err
	})
	return snapshot, body, err
}

// entry is the body of a message of the index.
type entry struct {
	Session string `json:"session"`
}

// sessionOf returns the session of a snapshot, or nothing if the index has none.
func (s *Store[State]) sessionOf(ctx context.Context, id string) (string, error) {
	var e entry
	err := s.store.Use(ctx, ctxdir.ContextID(IndexKind, IndexKind), func(c *ctxdir.Context) error {
		m, err := c.Active().Message(ctx, messageID(c, id))
		if err != nil {
			return err
		}
		body, err := m.Body(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &e)
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		return "", nil
	}
	return e.Session, err
}

// addToIndex says to which session a snapshot belongs. It fails with [ctxdir.ErrConflict] if that is another one.
func (s *Store[State]) addToIndex(ctx context.Context, id, session string) error {
	d, err := ctxdir.NewDraft(entry{session})
	if err != nil {
		return err
	}
	m := ctxdir.Metadata{Kind: IndexKind, ExternalID: IndexKind, Labels: map[string]string{"tool": "genkit"}}
	err = s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		d.ID, d.OriginID = messageID(c, id), id
		_, err := c.Active().Append(ctx, d)
		return err
	})
	if errors.Is(err, ctxdir.ErrConflict) {
		return fmt.Errorf("snapshot %q belongs to another session than %q: %w", id, session, err)
	}
	return err
}

// SaveSnapshot stores what fn makes of a snapshot. It calls fn again if another goroutine or process has changed the session
// meanwhile.
//
// Two commits store a new snapshot: first the index gets its session, then the session gets its messages and the snapshot.
// After a crash in between, the index names a session that has no such snapshot: readers do not find it, and a retry stores
// it.
func (s *Store[State]) SaveSnapshot(ctx context.Context, id string,
	fn func(*exp.SessionSnapshot[State]) (*exp.SessionSnapshot[State], error),
) (*exp.SessionSnapshot[State], error) {
	if id == "" {
		id = uuid.NewString()
	}
	for {
		existing, was, err := s.read(ctx, id)
		if err != nil {
			return nil, err
		}
		session := ""
		if existing != nil {
			session = existing.SessionID // fn may change existing
		}
		next, err := fn(existing)
		if next == nil || err != nil {
			return nil, err
		}
		next.SnapshotID, next.SessionID = id, cmp.Or(session, next.SessionID)
		next.Status = cmp.Or(next.Status, exp.SnapshotStatusCompleted)
		if next.SessionID == "" {
			return nil, core.NewError(core.INVALID_ARGUMENT, "snapshot %q has no session id", id)
		}
		if err = s.put(ctx, next, was); err == nil {
			return next, nil
		}
		if !errors.Is(err, ctxdir.ErrPosition) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// put stores a snapshot, if the body of its message still is was. It fails with [ctxdir.ErrPosition] if the session has
// changed meanwhile.
func (s *Store[State]) put(ctx context.Context, next *exp.SessionSnapshot[State], was []byte) error {
	if was == nil {
		if err := s.addToIndex(ctx, next.SnapshotID, next.SessionID); err != nil {
			return err
		}
	}
	m := ctxdir.Metadata{Kind: Kind, ExternalID: next.SessionID, Labels: map[string]string{"tool": "genkit"}}
	return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		sequence := c.Summary().Sequence
		p, err := newPlan(ctx, c, next)
		if err != nil {
			return err
		}
		if !bytes.Equal(p.was, was) {
			return fmt.Errorf("snapshot %q was changed: %w", next.SnapshotID, ctxdir.ErrPosition)
		}
		if len(p.tail) == 0 && bytes.Equal(p.was, p.record.Body) {
			return nil
		}
		_, err = c.Commit(ctx, p.apply, ctxdir.WriteOptions{Sequence: &sequence})
		return err
	})
}

// OnSnapshotStatusChange returns a channel that yields the status of a snapshot, and each later one that any process
// stores. A slow reader gets the newest one. The channel is closed when ctx is cancelled, and at once if there is no such
// snapshot.
func (s *Store[State]) OnSnapshotStatusChange(ctx context.Context, id string) <-chan exp.SnapshotStatus {
	statuses, ready := make(chan exp.SnapshotStatus, 1), make(chan bool, 1)
	go func() {
		defer close(statuses)
		session, err := s.sessionOf(ctx, id)
		if err == nil && session != "" {
			_ = s.use(ctx, session, func(c *ctxdir.Context) error { return follow(ctx, c, id, statuses, ready) })
		}
		select {
		case ready <- false: // there is no such snapshot
		default:
			<-ctx.Done() // also if the session was removed
		}
	}()
	<-ready
	return statuses
}

// follow sends the status of a snapshot and its changes, until ctx is cancelled or the session is removed. It reports to
// ready that it has sent the first.
func follow(ctx context.Context, c *ctxdir.Context, id string, statuses chan exp.SnapshotStatus, ready chan<- bool) error {
	from := c.Summary().Sequence
	_, m, err := snapshotOf(ctx, c, id)
	if m == nil || err != nil {
		return err
	}
	w, err := c.Watch(ctx, from)
	if err != nil {
		return err
	}
	defer w.Close()
	var last exp.SnapshotStatus
	send := func(m *ctxdir.Message) {
		h, err := headerOf(ctx, m)
		if err != nil || h.Status == last {
			return
		}
		last = h.Status
		select {
		case <-statuses: // nobody has read the one before
		default:
		}
		statuses <- last
	}
	send(m)
	ready <- true
	for e := range w.Events(ctx) {
		switch {
		case e.Kind == ctxdir.EventMessage && e.Message.ID == messageID(c, id):
			send(e.Message)
		case e.Kind == ctxdir.EventResync:
			if _, m, err := snapshotOf(ctx, c, id); m != nil && err == nil {
				send(m)
			}
		}
	}
	return nil
}
