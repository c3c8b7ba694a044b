package genkit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/ctxdir/ctxdir"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/google/uuid"
)

// snapshotType is the type of the messages that are snapshots.
const snapshotType = "snapshot"

// version is a snapshot as it is stored, the body of a message. The messages of its state are not in it: they are those of
// its line up to End.
type version[State any] struct {
	*exp.SessionSnapshot[State]
	End uuid.UUID `json:"end"` // a message, often that of the snapshot; uuid.Nil for the beginning

	raw  []byte         // nil if there is no snapshot
	on   *ctxdir.Branch // shows the message of the snapshot
	line *ctxdir.Branch // shows End
	next int64          // the position behind End
}

// messageID returns the id of the message of a snapshot.
func messageID(c *ctxdir.Context, snapshot string) uuid.UUID {
	return uuid.NewSHA1(c.ID(), []byte(snapshot))
}

// look returns a message and a branch that shows it, the active one if that does, or nil. An erased message is none.
func look(ctx context.Context, c *ctxdir.Context, id uuid.UUID) (*ctxdir.Branch, *ctxdir.Message, error) {
	meta := c.Metadata()
	for _, entry := range append([]ctxdir.BranchMetadata{{Name: meta.ActiveBranch}}, meta.Branches...) {
		b, err := c.Branch(entry.Name)
		var m *ctxdir.Message
		if err == nil {
			m, err = b.Message(ctx, id)
		}
		if errors.Is(err, ctxdir.ErrNotExist) || err == nil && errors.Is(m.Unavailable, ctxdir.ErrErased) {
			continue
		}
		return b, m, err
	}
	return nil, nil, nil
}

// find returns the snapshot of a message.
func find[State any](ctx context.Context, c *ctxdir.Context, id uuid.UUID) (version[State], error) {
	b, m, err := look(ctx, c, id)
	if m == nil || err != nil {
		return version[State]{}, err
	}
	return open[State](ctx, c, b, m)
}

// latest returns the last snapshot on the active branch.
func latest[State any](ctx context.Context, c *ctxdir.Context) (version[State], error) {
	b := c.Active()
	for m, err := range b.Query(ctx, ctxdir.Query{Types: []string{snapshotType}, Backward: true}) {
		if err != nil {
			return version[State]{}, err
		}
		return open[State](ctx, c, b, m)
	}
	return version[State]{line: b}, nil
}

// open returns the snapshot of a message on a branch. If somebody rewound its line, it ends with its message.
func open[State any](ctx context.Context, c *ctxdir.Context, on *ctxdir.Branch, m *ctxdir.Message) (version[State], error) {
	v := version[State]{SessionSnapshot: &exp.SessionSnapshot[State]{}, on: on, line: on}
	var err error
	if v.raw, err = m.Body(ctx); err == nil {
		err = json.Unmarshal(v.raw, &v)
	}
	if err != nil {
		return version[State]{}, err
	}
	if v.End == uuid.Nil {
		return v, nil
	}
	b, end, err := look(ctx, c, v.End)
	if end != nil {
		v.line, m = b, end
	}
	v.End, v.next = m.ID, m.Position+1
	return v, err
}

// message is a message of a conversation.
type message struct {
	*ctxdir.Message
	body []byte
}

// messages returns the messages of a line, without those that were erased.
func (v version[State]) messages(ctx context.Context) (all []message, err error) {
	for m, err := range v.line.Messages(ctx, 0, v.next) {
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
		all = append(all, message{m, body})
	}
	return all, nil
}

// same says whether two bodies are the same JSON. A message that was read differs from what was written in the order of
// members, where that was a Go struct.
func same(a, b []byte) bool {
	var x, y any
	return bytes.Equal(a, b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// save returns the change that stores a snapshot, or nil if it is stored. It continues the line of the snapshot itself, if
// that is there, or of its parent, or of the latest one.
func save[State any](ctx context.Context, c *ctxdir.Context, next *exp.SessionSnapshot[State], was []byte) (func(*ctxdir.Tx) error, error) {
	id, active := messageID(c, next.SnapshotID), c.Active().Name()
	old, err := find[State](ctx, c, id)
	if err == nil && !bytes.Equal(old.raw, was) {
		err = fmt.Errorf("snapshot %q was changed: %w", next.SnapshotID, ctxdir.ErrPosition)
	}
	if err != nil {
		return nil, err
	}
	base, newest := old, false
	if was == nil {
		if base, err = latest[State](ctx, c); err != nil {
			return nil, err
		}
		newest = base.raw == nil ||
			cmp.Or(next.CreatedAt.Compare(base.CreatedAt), cmp.Compare(next.SnapshotID, base.SnapshotID)) > 0
		parent, err := find[State](ctx, c, messageID(c, next.ParentID))
		if err != nil {
			return nil, err
		}
		if parent.raw != nil {
			base = parent
		}
	}
	from, end, tail, err := base.extend(ctx, next)
	if err != nil {
		return nil, err
	}
	n, err := base.line.Len(ctx)
	if err != nil {
		return nil, err
	}
	name := base.line.Name()
	fork := from != n || was == nil && !newest && name == active
	part := *next
	if next.State != nil {
		state := *next.State
		state.Messages, part.State = nil, &state
	}
	if was == nil {
		end = id
	}
	record, err := ctxdir.NewDraft(version[State]{SessionSnapshot: &part, End: end})
	record.ID, record.OriginID, record.Type, record.CreatedAt = id, next.SnapshotID, snapshotType, next.CreatedAt
	if err != nil || len(tail) == 0 && bytes.Equal(record.Body, was) {
		return nil, err
	}
	return func(tx *ctxdir.Tx) error {
		if was != nil {
			err := tx.Replace(old.on.Name(), id, record, ctxdir.WriteOptions{Shared: true})
			if err != nil || len(tail) == 0 {
				return err
			}
		}
		to := name
		if fork {
			for n := len(tx.Metadata().Branches) + 1; tx.Metadata().Branch(to) != nil; n++ {
				to = fmt.Sprintf("fork-%d", n)
			}
			if err := tx.Fork(to, name, from); err != nil {
				return err
			}
		}
		if err := tx.Append(to, tail...); err != nil || was != nil {
			return err
		}
		if err := tx.Append(to, record); err != nil || !newest || to == active {
			return err
		}
		return tx.Switch(to)
	}, nil
}

// extend compares the messages of the next snapshot with the line. It returns the position behind what they have in common,
// the id of the last message, and the messages that the line lacks.
func (v version[State]) extend(
	ctx context.Context, next *exp.SessionSnapshot[State],
) (from int64, end uuid.UUID, tail []ctxdir.Draft, err error) {
	if next.State == nil {
		return v.next, v.End, nil, nil
	}
	all, err := v.messages(ctx)
	if err != nil {
		return 0, uuid.Nil, nil, err
	}
	from, end = v.next, v.End
	keep := 0
	for _, m := range next.State.Messages {
		d, err := ctxdir.NewDraft(m)
		if err == nil {
			d.ID, err = uuid.NewV7()
		}
		if err != nil {
			return 0, uuid.Nil, nil, err
		}
		if len(tail) == 0 && keep < len(all) && same(all[keep].body, d.Body) {
			keep++
			continue
		}
		if d.Role = string(m.Role); m.Role == ai.RoleModel {
			d.Role = "assistant"
		}
		d.CreatedAt = next.UpdatedAt
		tail = append(tail, d)
	}
	if keep < len(all) {
		from, end = all[keep].Position, uuid.Nil
		if keep > 0 {
			end = all[keep-1].ID
		}
	}
	if len(tail) > 0 {
		end = tail[len(tail)-1].ID
	}
	return from, end, tail, nil
}
