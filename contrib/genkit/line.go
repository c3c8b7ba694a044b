package genkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/google/uuid"
)

// line says which messages a snapshot has: those up to End, on any branch that shows End. Later snapshots continue behind
// End. If only the message of the snapshot is there, since End was rewound, it ends there.
type line struct {
	End      uuid.UUID `json:"end"`      // uuid.Nil for none
	Messages int       `json:"messages"` // how many
	SHA256   []byte    `json:"sha256"`   // of their bodies and a line feed after each; nil if it is unknown
}

// body is the body of a snapshot's message.
type body[State any] struct {
	*exp.SessionSnapshot[State]      // without the messages of the state
	Line                        line `json:"line"`
}

// header is a part of body.
type header struct {
	ID        string             `json:"snapshotId"`
	CreatedAt time.Time          `json:"createdAt"`
	Status    exp.SnapshotStatus `json:"status"`
	Line      line               `json:"line"`
}

func headerOf(ctx context.Context, m *ctxdir.Message) (h header, err error) {
	body, err := m.Body(ctx)
	if err == nil {
		err = json.Unmarshal(body, &h)
	}
	return h, err
}

// messageID returns the id of the message of a snapshot.
func messageID(c *ctxdir.Context, snapshot string) uuid.UUID {
	return uuid.NewSHA1(c.ID(), []byte(snapshot))
}

// find returns a message and a branch that shows it, or nil: preferably one that ends with it, then the active one.
func find(ctx context.Context, c *ctxdir.Context, id uuid.UUID) (branch *ctxdir.Branch, found *ctxdir.Message, err error) {
	meta := c.Metadata()
	names := []string{meta.ActiveBranch}
	for _, b := range slices.Backward(meta.Branches) {
		names = append(names, b.Name)
	}
	for _, name := range names {
		b, err := c.Branch(name)
		var m *ctxdir.Message
		if err == nil {
			m, err = b.Message(ctx, id)
		}
		if errors.Is(err, ctxdir.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		n, err := b.Len(ctx)
		if err != nil || n == m.Position+1 {
			return b, m, err
		}
		if found == nil {
			branch, found = b, m
		}
	}
	return branch, found, nil
}

// snapshotOf returns the message of a snapshot and a branch that shows it, or nil. An erased snapshot is none.
func snapshotOf(ctx context.Context, c *ctxdir.Context, id string) (*ctxdir.Branch, *ctxdir.Message, error) {
	b, m, err := find(ctx, c, messageID(c, id))
	if m != nil && errors.Is(m.Unavailable, ctxdir.ErrErased) {
		return nil, nil, err
	}
	return b, m, err
}

// latest returns the message of the last snapshot on the active branch, or nil.
func latest(ctx context.Context, c *ctxdir.Context) (*ctxdir.Message, error) {
	for m, err := range c.Active().Query(ctx, ctxdir.Query{Types: []string{snapshotType}, Backward: true}) {
		return m, err
	}
	return nil, nil
}

// place is where the messages of a snapshot end.
type place struct {
	branch *ctxdir.Branch
	last   uuid.UUID // uuid.Nil for the beginning of a branch
	end    int64     // the position behind the last
	whole  bool      // whether all of them are there
}

func placeOf(ctx context.Context, c *ctxdir.Context, snapshot *ctxdir.Message, l line) (place, error) {
	if l.End == uuid.Nil {
		return place{branch: c.Active(), whole: true}, nil
	}
	b, m, err := find(ctx, c, l.End)
	whole := m != nil
	if !whole && err == nil {
		b, m, err = find(ctx, c, snapshot.ID)
	}
	if m == nil || err != nil {
		return place{}, cmp.Or(err, ctxdir.ErrPosition) // rewound meanwhile
	}
	return place{b, m.ID, m.Position + 1, whole}, nil
}

// stored is a message of a conversation.
type stored struct {
	*ctxdir.Message
	body []byte
}

// conversation returns the messages up to a place, without those that were erased.
func (p place) conversation(ctx context.Context) (all []stored, err error) {
	for m, err := range p.branch.Messages(ctx, 0, p.end) {
		if err != nil {
			return nil, err
		}
		if m.Type == snapshotType || errors.Is(m.Unavailable, ctxdir.ErrErased) {
			continue
		}
		body, err := m.Body(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, stored{m, body})
	}
	return all, nil
}

// load returns the snapshot of a message, and the body of the message.
func load[State any](ctx context.Context, c *ctxdir.Context, m *ctxdir.Message) (*exp.SessionSnapshot[State], []byte, error) {
	raw, err := m.Body(ctx)
	if err != nil {
		return nil, nil, err
	}
	var r body[State]
	if err := json.Unmarshal(raw, &r); err != nil || r.State == nil {
		return r.SessionSnapshot, raw, err
	}
	p, err := placeOf(ctx, c, m, r.Line)
	if err != nil {
		return nil, nil, err
	}
	all, err := p.conversation(ctx)
	for _, m := range all {
		message := &ai.Message{}
		if err := json.Unmarshal(m.body, message); err != nil {
			return nil, nil, err
		}
		r.State.Messages = append(r.State.Messages, message)
	}
	return r.SessionSnapshot, raw, err
}
