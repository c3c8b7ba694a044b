package genkit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/google/uuid"
)

// plan is the commit of a snapshot.
type plan struct {
	was    []byte         // the body of its message, nil for a new snapshot
	shown  string         // a branch that shows its message
	newest bool           // whether it becomes the latest snapshot
	line   line           // of the snapshot that it continues
	at     place          // of that one
	from   int64          // the position of the first message of tail
	tail   []ctxdir.Draft // messages that the line lacks
	fork   bool
	record ctxdir.Draft // its message
}

func newPlan[State any](ctx context.Context, c *ctxdir.Context, next *exp.SessionSnapshot[State]) (*plan, error) {
	p := &plan{newest: true}
	if err := p.findBase(ctx, c, next.SnapshotID, next.ParentID, next.CreatedAt); err != nil {
		return nil, err
	}
	p.from = p.at.end
	l, part := p.line, *next
	l.End = p.at.last
	if !p.at.whole {
		l.SHA256 = nil
	}
	if next.State != nil {
		drafts, err := draftsOf(next.State.Messages, next.UpdatedAt)
		if err != nil {
			return nil, err
		}
		if l, err = p.fit(ctx, drafts); err != nil {
			return nil, err
		}
		state := *next.State
		state.Messages, part.State = nil, &state
	}
	n, err := p.at.branch.Len(ctx)
	if err != nil {
		return nil, err
	}
	p.fork = p.from != n || p.was == nil && !p.newest && p.at.branch.Name() == c.Active().Name()
	id := messageID(c, next.SnapshotID)
	if p.was == nil {
		l.End = id
	} else if len(p.tail) > 0 {
		l.End = p.tail[len(p.tail)-1].ID
	}
	p.record, err = ctxdir.NewDraft(body[State]{&part, l})
	p.record.ID, p.record.OriginID, p.record.Type, p.record.CreatedAt = id, next.SnapshotID, snapshotType, next.CreatedAt
	return p, err
}

// findBase finds what a snapshot continues: itself, if it is there, or its parent, or the latest one.
func (p *plan) findBase(ctx context.Context, c *ctxdir.Context, id, parent string, created time.Time) error {
	shown, base, err := snapshotOf(ctx, c, id)
	if err != nil {
		return err
	}
	if base != nil {
		p.shown = shown.Name()
		if p.was, err = base.Body(ctx); err != nil {
			return err
		}
	} else {
		if base, err = latest(ctx, c); err != nil {
			return err
		}
		if base != nil {
			h, err := headerOf(ctx, base)
			if err != nil {
				return err
			}
			p.newest = cmp.Or(created.Compare(h.CreatedAt), cmp.Compare(id, h.ID)) > 0
		}
		_, m, err := snapshotOf(ctx, c, parent)
		if err != nil {
			return err
		}
		base = cmp.Or(m, base)
	}
	if base == nil {
		p.at = place{branch: c.Active(), whole: true}
		return nil
	}
	h, err := headerOf(ctx, base)
	if err != nil {
		return err
	}
	p.line = h.Line
	p.at, err = placeOf(ctx, c, base, h.Line)
	return err
}

// draftsOf returns the messages of a conversation.
func draftsOf(messages []*ai.Message, at time.Time) ([]ctxdir.Draft, error) {
	drafts := make([]ctxdir.Draft, len(messages))
	for i, m := range messages {
		d, err := ctxdir.NewDraft(m)
		if err == nil {
			d.ID, err = uuid.NewV7()
		}
		if err != nil {
			return nil, err
		}
		d.Role, d.CreatedAt = string(m.Role), at
		drafts[i] = d
	}
	return drafts, nil
}

// fit compares the messages of a snapshot with the line that it continues, and decides where the rest of them belongs. It
// reads the line only if the hashes differ.
func (p *plan) fit(ctx context.Context, drafts []ctxdir.Draft) (line, error) {
	hash, keep := sha256.New(), -1
	for i := 0; ; i++ {
		if i == p.line.Messages && p.at.whole && bytes.Equal(hash.Sum(nil), p.line.SHA256) {
			keep = i
		}
		if i == len(drafts) {
			break
		}
		hash.Write(drafts[i].Body)
		hash.Write([]byte("\n"))
	}
	l := line{p.at.last, len(drafts), hash.Sum(nil)}
	if keep < 0 {
		all, err := p.at.conversation(ctx)
		if err != nil {
			return l, err
		}
		for keep = 0; keep < min(len(all), len(drafts)) && same(all[keep].body, drafts[keep].Body); {
			keep++
		}
		if keep < len(all) {
			p.from, l.End = all[keep].Position, uuid.Nil
			if keep > 0 {
				l.End = all[keep-1].ID
			}
		}
	}
	p.tail = drafts[keep:]
	return l, nil
}

// same says whether two bodies are the same JSON. A message that was read differs from what was written in the order of
// members, where that was a Go struct.
func same(a, b []byte) bool {
	var x, y any
	return bytes.Equal(a, b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// apply makes the changes of the commit.
func (p *plan) apply(tx *ctxdir.Tx) error {
	drafts := p.tail
	if p.was == nil {
		drafts = append(drafts[:len(drafts):len(drafts)], p.record)
	} else if err := tx.Replace(p.shown, p.record.ID, p.record, ctxdir.WriteOptions{Shared: true}); err != nil || len(drafts) == 0 {
		return err
	}
	name := p.at.branch.Name()
	if p.fork {
		from := name
		for n := len(tx.Metadata().Branches) + 1; ; n++ {
			if name = fmt.Sprintf("fork-%d", n); tx.Metadata().Branch(name) == nil {
				break
			}
		}
		if err := tx.Fork(name, from, p.from); err != nil {
			return err
		}
	}
	if err := tx.Append(name, drafts...); err != nil {
		return err
	}
	if p.was == nil && p.newest && name != tx.Metadata().ActiveBranch {
		return tx.Switch(name)
	}
	return nil
}
