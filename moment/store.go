package moment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// InStore yields the moments of contexts, or of every context of the store without a kind. An error of one context does
// not end the sequence.
func InStore(ctx context.Context, s *ctxdir.Store, contexts ...uuid.UUID) iter.Seq2[Moment, error] {
	return func(yield func(Moment, error) bool) {
		ids := slices.Clone(contexts)
		if len(ids) == 0 {
			for sum, err := range s.List(ctx, ctxdir.ListOptions{}) {
				if err != nil && !yield(Moment{}, err) {
					return
				}
				if err == nil && sum.Problem == nil && sum.Legacy == "" && sum.Branches > 1 { // one is that of the conversation
					ids = append(ids, sum.ID)
				}
			}
		}
		for _, id := range ids {
			more := true
			err := s.Use(ctx, id, func(c *ctxdir.Context) error {
				for m, err := range All(ctx, c) {
					if more = yield(m, err); !more {
						return nil
					}
				}
				return nil
			})
			if !more || err != nil && !yield(Moment{}, err) {
				return
			}
		}
	}
}

// Add stores moments, and returns those that the context did not have. A moment that was removed before is not stored
// again. Add fails with [ctxdir.ErrInvalid] for a moment without a text or with another type, and with
// [ctxdir.ErrNotExist] if no branch shows one of its sources.
func Add(ctx context.Context, c *ctxdir.Context, moments ...Moment) ([]Moment, error) {
	for _, m := range moments {
		for _, id := range m.From {
			if _, err := source(ctx, c, id); err != nil {
				return nil, err
			}
		}
	}
	return addAll(ctx, c, moments)
}

// addAll is Add that leaves out moments whose sources are not available. If another process adds one of them meanwhile, it
// begins again.
func addAll(ctx context.Context, c *ctxdir.Context, moments []Moment) (added []Moment, err error) {
	const attempts = 3
	for range attempts {
		if err = c.Refresh(ctx); err != nil {
			return nil, err
		}
		if added, err = addOnce(ctx, c, moments); !errors.Is(err, ctxdir.ErrConflict) {
			break
		}
	}
	return added, err
}

func addOnce(ctx context.Context, c *ctxdir.Context, moments []Moment) ([]Moment, error) {
	known, err := knownIn(ctx, c)
	if err != nil {
		return nil, err
	}
	var fresh []Moment
	for _, m := range moments {
		m.Context, m.ID = c.ID(), m.identify(c.ID())
		m.At = cmp.Or(m.At, time.Now()).UTC().Truncate(time.Microsecond)
		if err := m.check(); err != nil {
			return nil, err
		}
		if !known[m.ID] {
			known[m.ID] = true
			fresh = append(fresh, m)
		}
	}
	for block := range slices.Chunk(fresh, perCommit) {
		if err := add(ctx, c, block); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(fresh, func(m Moment) bool { return m.ID == uuid.Nil }), nil
}

// perCommit bounds the moments of one commit.
const perCommit = 256

// add stores moments that are new in one commit. Those whose source is not available lose their id.
func add(ctx context.Context, c *ctxdir.Context, moments []Moment) error {
	_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
		var drafts []ctxdir.Draft
		for i := range moments {
			// Under the lock: an erase that has marked the source by now does not find this moment.
			if !sourcesAvailable(ctx, c, &moments[i]) {
				moments[i].ID = uuid.Nil
				continue
			}
			d, err := moments[i].draft(moments[i].ID)
			if err != nil {
				return err
			}
			drafts = append(drafts, d)
		}
		if len(drafts) == 0 {
			return nil
		}
		name, err := openBranch(tx)
		if err != nil {
			return err
		}
		return tx.Append(name, drafts...)
	})
	return err
}

// sourcesAvailable reports whether all sources of a moment can be read.
func sourcesAvailable(ctx context.Context, c *ctxdir.Context, m *Moment) bool {
	for _, id := range m.From {
		if stored, err := source(ctx, c, id); err != nil || stored.Unavailable != nil {
			return false
		}
	}
	return true
}

// source returns a message of the conversation.
func source(ctx context.Context, c *ctxdir.Context, id uuid.UUID) (*ctxdir.Message, error) {
	for _, one := range c.Metadata().Branches {
		if BranchKind(one.Extra) != "" {
			continue
		}
		b, err := c.Branch(one.Name)
		if err != nil {
			return nil, err
		}
		if stored, err := b.Message(ctx, id); !errors.Is(err, ctxdir.ErrNotExist) {
			return stored, err
		}
	}
	return nil, &ctxdir.Error{Op: "find", Context: c.ID(), ID: id, Err: fmt.Errorf("%w: message %s", ctxdir.ErrNotExist, id)}
}

// openBranch returns the branch for moments, which it makes if there is none.
func openBranch(tx *ctxdir.Tx) (string, error) {
	m := tx.Metadata()
	name, ok := branchOf(m)
	if ok {
		return name, nil
	}
	for n := 1; ; n++ {
		name = Kind
		if n > 1 {
			name = fmt.Sprintf("%s-%d", Kind, n)
		}
		if m.Branch(name) != nil {
			continue
		}
		if err := tx.NewBranch(name); err != nil {
			return "", err
		}
		return name, tx.Update(func(m *ctxdir.Metadata) error {
			m.Branch(name).Extra = json.RawMessage(`{"kind":"` + Kind + `"}`)
			return nil
		})
	}
}

// knownIn returns the ids of all moments of a context, those that are removed or erased included.
func knownIn(ctx context.Context, c *ctxdir.Context) (map[uuid.UUID]bool, error) {
	known := map[uuid.UUID]bool{}
	name, ok := branchOf(c.Metadata())
	if !ok {
		return known, nil
	}
	b, err := c.Branch(name)
	if err != nil {
		return nil, err
	}
	for stored, err := range b.Messages(ctx, 0, math.MaxInt64) {
		if err != nil {
			return nil, err
		}
		known[stored.ID] = true
	}
	return known, nil
}

// Remove removes a moment. Its text goes to the trash of the context, which can restore it for the grace period.
// Extract does not bring it back.
func Remove(ctx context.Context, c *ctxdir.Context, id uuid.UUID) error {
	missing := &ctxdir.Error{Op: "remove", Context: c.ID(), ID: id, Err: fmt.Errorf("%w: moment %s", ctxdir.ErrNotExist, id)}
	name, ok := branchOf(c.Metadata())
	if !ok {
		return missing
	}
	b, err := c.Branch(name)
	if err != nil {
		return err
	}
	stored, err := b.Message(ctx, id)
	if err != nil {
		return err
	}
	m, ok := parse(ctx, c.ID(), stored)
	if !ok {
		return missing
	}
	raw, err := encode(body{Type: m.Type, From: m.From, Removed: true})
	if err != nil {
		return err
	}
	return b.Replace(ctx, id, ctxdir.Draft{Role: Role, Type: string(m.Type), CreatedAt: stored.CreatedAt, Body: raw})
}
