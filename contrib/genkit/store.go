package genkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/core"
	"github.com/google/uuid"
)

var (
	_ exp.SessionStore[any]  = (*Store[any])(nil)
	_ exp.SnapshotSubscriber = (*Store[any])(nil)
)

// IndexKind is the kind of the context that says to which session a snapshot belongs. It is its external id, too.
const IndexKind = "genkit-snapshots"

// externalID returns the external id of the context that holds a session.
func externalID(session string) string { return "genkit/" + session }

// ContextID returns the id of the context that holds a session. Its external id is genkit/SESSION.
func ContextID(session string) uuid.UUID { return ctxdir.ContextID("", externalID(session)) }

// Store keeps sessions with a custom state of the type State in a store. Several processes may use it.
type Store[State any] struct {
	store *ctxdir.Store
}

// NewStore returns a store that keeps its sessions in store. The caller closes store.
func NewStore[State any](store *ctxdir.Store) *Store[State] { return &Store[State]{store} }

// GetSnapshot returns a snapshot, or nil if there is none.
func (s *Store[State]) GetSnapshot(ctx context.Context, id string) (*exp.SessionSnapshot[State], error) {
	v, err := s.read(ctx, id)
	return v.SessionSnapshot, err
}

// GetLatestSnapshot returns the last snapshot on the active branch of a session, or nil if there is none. That is the most
// recently created one of the session, unless somebody made another branch the active one.
func (s *Store[State]) GetLatestSnapshot(ctx context.Context, session string) (*exp.SessionSnapshot[State], error) {
	if session == "" {
		return nil, core.NewError(core.INVALID_ARGUMENT, "the session id is empty")
	}
	v, err := s.readFrom(ctx, session, latest[State])
	return v.SessionSnapshot, err
}

// read returns a snapshot with its messages.
func (s *Store[State]) read(ctx context.Context, id string) (version[State], error) {
	session, err := s.sessionOf(ctx, id)
	if session == "" || err != nil {
		return version[State]{}, err
	}
	return s.readFrom(ctx, session, func(ctx context.Context, c *ctxdir.Context) (version[State], error) {
		return find[State](ctx, c, messageID(c, id))
	})
}

// readFrom returns the snapshot that f finds in a session with its messages.
func (s *Store[State]) readFrom(ctx context.Context, session string,
	f func(context.Context, *ctxdir.Context) (version[State], error),
) (v version[State], err error) {
	err = s.use(ctx, ContextID(session), func(c *ctxdir.Context) error {
		if v, err = f(ctx, c); v.raw == nil || v.State == nil || err != nil {
			return err
		}
		all, err := v.messages(ctx)
		for _, m := range all {
			message := &ai.Message{}
			if err := json.Unmarshal(m.body, message); err != nil {
				return err
			}
			v.State.Messages = append(v.State.Messages, message)
		}
		return err
	})
	if err != nil {
		return version[State]{}, err
	}
	return v, nil
}

// use calls f with a context, if that exists.
func (s *Store[State]) use(ctx context.Context, id uuid.UUID, f func(*ctxdir.Context) error) error {
	exists := false
	err := s.store.Use(ctx, id, func(c *ctxdir.Context) error {
		exists = true
		return f(c)
	})
	if !exists && errors.Is(err, ctxdir.ErrNotExist) {
		return nil
	}
	return err
}

// entry is the body of a message of the index.
type entry struct {
	Session string `json:"session"`
}

// sessionOf returns the session of a snapshot, or nothing if the index has none.
func (s *Store[State]) sessionOf(ctx context.Context, id string) (string, error) {
	var e entry
	err := s.use(ctx, ctxdir.ContextID(IndexKind, IndexKind), func(c *ctxdir.Context) error {
		m, err := c.Active().Message(ctx, messageID(c, id))
		if errors.Is(err, ctxdir.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		body, err := m.Body(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &e)
	})
	return e.Session, err
}

// addToIndex says to which session a snapshot belongs. It fails with [ctxdir.ErrConflict] if that is another one.
func (s *Store[State]) addToIndex(ctx context.Context, id, session string) error {
	d, err := ctxdir.NewDraft(entry{session})
	if err != nil {
		return err
	}
	m := ctxdir.Metadata{Kind: IndexKind, ExternalID: IndexKind, Labels: map[string]string{"tool": "genkit"}}
	return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		d.ID, d.OriginID = messageID(c, id), id
		_, err := c.Active().Append(ctx, d)
		return err
	})
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
	id = cmp.Or(id, uuid.NewString())
	for {
		was, err := s.read(ctx, id)
		if err != nil {
			return nil, err
		}
		session := ""
		if was.raw != nil {
			session = was.SessionID // fn may change it
		}
		next, err := fn(was.SessionSnapshot)
		if next == nil || err != nil {
			return nil, err
		}
		next.SnapshotID, next.SessionID = id, cmp.Or(session, next.SessionID)
		next.Status = cmp.Or(next.Status, exp.SnapshotStatusCompleted)
		if next.SessionID == "" {
			return nil, core.NewError(core.INVALID_ARGUMENT, "snapshot %q has no session id", id)
		}
		if err = s.put(ctx, next, was.raw); err == nil {
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
	m := ctxdir.Metadata{ExternalID: externalID(next.SessionID), Labels: map[string]string{"tool": "genkit"}}
	return s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		sequence := c.Summary().Sequence
		change, err := save(ctx, c, next, was)
		if change == nil || err != nil {
			return err
		}
		_, err = c.Commit(ctx, change, ctxdir.WriteOptions{Sequence: &sequence})
		return err
	})
}

// OnSnapshotStatusChange returns a channel that yields the status of a snapshot, and each later one that any process
// stores. A slow reader gets the newest one. The channel is closed when ctx is cancelled, when the session is removed, and at
// once if there is no such snapshot. [ctxdir.Store.Close] waits until it is closed.
func (s *Store[State]) OnSnapshotStatusChange(ctx context.Context, id string) <-chan exp.SnapshotStatus {
	statuses := make(chan exp.SnapshotStatus, 1)
	v, err := s.read(ctx, id)
	if v.raw == nil || err != nil {
		close(statuses)
		return statuses
	}
	statuses <- v.Status
	session, last := v.SessionID, v.Status
	go func() {
		defer close(statuses)
		_ = s.store.Use(ctx, ContextID(session), func(c *ctxdir.Context) error {
			w, err := c.Watch(ctx, c.Summary().Sequence)
			if err != nil {
				return err
			}
			defer func() { _ = w.Close() }()
			key := messageID(c, id)
			send := func() {
				if v, err := find[State](ctx, c, key); err == nil && v.raw != nil && v.Status != last {
					last = v.Status
					select {
					case <-statuses: // nobody has read the one before
					default:
					}
					statuses <- last
				}
			}
			send()
			for e := range w.Events(ctx) {
				if e.Kind == ctxdir.EventResync || e.Kind == ctxdir.EventMessage && e.Message.ID == key {
					if err := c.Refresh(ctx); err != nil {
						return err
					}
					send()
				}
			}
			return nil
		})
	}()
	return statuses
}
