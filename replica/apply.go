package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Apply implements [Peer].
func (f *Folder) Apply(
	ctx context.Context, changes []Change, payload func(sum string) (io.ReadCloser, int64, error),
) ([]Result, error) {
	results := make([]Result, len(changes))
	for i := range changes {
		results[i].Err = f.apply(ctx, &changes[i], payload, &results[i])
		if err := ctx.Err(); err != nil {
			return results, err
		}
	}
	return results, nil
}

func (f *Folder) apply(
	ctx context.Context, ch *Change, payload func(sum string) (io.ReadCloser, int64, error), result *Result,
) error {
	if ch.Remove {
		if ch.Sequence != nil {
			err := f.s.Use(ctx, ch.ID, func(c *ctxdir.Context) error { return isAt(c, *ch.Sequence) })
			if err != nil {
				return err
			}
		}
		_, err := f.s.Remove(ctx, ch.ID)
		return err
	}
	if ch.Create != nil {
		if err := f.create(ctx, ch.ID, ch.Create); err != nil {
			return err
		}
	}
	err := f.s.Use(ctx, ch.ID, func(c *ctxdir.Context) error { return commit(ctx, c, ch, payload, result) })
	erased := slices.Clone(ch.Erase)
	for _, op := range ch.Ops {
		for _, m := range op.Messages {
			if m.Erased { // another line may have it
				erased = append(erased, m.ID)
			}
		}
	}
	if err != nil || len(erased) == 0 {
		return err
	}
	if err := f.erase(ctx, ch.ID, erased); err != nil {
		return err
	}
	return f.s.Use(ctx, ch.ID, func(c *ctxdir.Context) error {
		if c.Summary().Sequence != result.Sequence {
			result.Commit = ""
		}
		return nil
	})
}

// commit makes the operations of a change one commit.
func commit(
	ctx context.Context, c *ctxdir.Context, ch *Change, payload func(sum string) (io.ReadCloser, int64, error), result *Result,
) error {
	done := ctxdir.CommitResult{Sequence: c.Summary().Sequence}
	if len(ch.Ops) > 0 {
		var err error
		done, err = c.Commit(ctx, func(tx *ctxdir.Tx) error {
			for i := range ch.Ops {
				if err := do(tx, &ch.Ops[i], payload); err != nil {
					return err
				}
			}
			return nil
		}, ctxdir.WriteOptions{Sequence: ch.Sequence})
		if err != nil {
			return err
		}
	}
	all, err := branches(ctx, c)
	if s := c.Summary(); s.Sequence == done.Sequence { // nothing was committed since
		result.Commit = s.Commit
	}
	result.Sequence, result.Branches = done.Sequence, all
	return err
}

func isAt(c *ctxdir.Context, sequence uint64) error {
	if s := c.Summary(); s.Sequence != sequence {
		return fmt.Errorf("%w: expected commit %d to be the newest, but %d is", ctxdir.ErrPosition, sequence, s.Sequence)
	}
	return nil
}

// create creates a context, unless it is there.
func (f *Folder) create(ctx context.Context, id uuid.UUID, m *Meta) error {
	updated := m.UpdatedAt
	if !updated.IsZero() {
		updated = updated.Add(-time.Microsecond) // the first commit moves it forward
	}
	c, err := f.s.Create(ctx, ctxdir.Metadata{
		ID: id, ParentID: m.ParentID, Title: m.Title, Labels: m.Labels, Kind: m.Kind, ExternalID: m.ExternalID,
		Config: m.Config, State: m.State, Extra: m.Extra, CreatedAt: m.CreatedAt,
		UpdatedAt: updated,
	})
	if errors.Is(err, ctxdir.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.Close()
}

// erase erases those of the messages that are there, and not erased yet.
func (f *Folder) erase(ctx context.Context, id uuid.UUID, messages []uuid.UUID) error {
	left := map[uuid.UUID]bool{}
	for _, m := range messages {
		left[m] = true
	}
	err := f.s.Use(ctx, id, func(c *ctxdir.Context) error {
		rows, err := changes(ctx, c, "", func(r *ctxdir.Row) bool { return left[r.ID] && !r.Erased })
		clear(left)
		for i := range rows {
			left[rows[i].ID] = true
		}
		return err
	})
	if err != nil || len(left) == 0 {
		return err
	}
	_, err = f.s.Erase(ctx, id, slices.SortedFunc(maps.Keys(left), compareIDs), ctxdir.EraseOptions{Shared: true})
	return err
}

// do does one operation of a commit.
func do(tx *ctxdir.Tx, op *Op, payload func(sum string) (io.ReadCloser, int64, error)) error {
	switch op.Kind {
	case OpRename:
		return tx.RenameBranch(op.Branch, op.To)
	case OpNew:
		return tx.NewBranch(op.Branch)
	case OpFork:
		return tx.Fork(op.Branch, op.From, op.N)
	case OpRewind:
		return tx.Rewind(op.Branch, op.N)
	case OpRemove:
		return tx.RemoveBranch(op.Branch)
	case OpAppend:
		drafts := make([]ctxdir.Draft, len(op.Messages))
		for i := range op.Messages {
			drafts[i] = draftOf(&op.Messages[i], payload)
		}
		return tx.Append(op.Branch, drafts...)
	case OpReplace:
		for i := range op.Messages {
			m := &op.Messages[i]
			if err := tx.Replace(op.Branch, m.ID, draftOf(m, payload), ctxdir.WriteOptions{Shared: true}); err != nil {
				return err
			}
		}
		return nil
	case OpMetadata:
		return setMeta(tx, op.Meta)
	}
	return fmt.Errorf("%w: operation %q", ctxdir.ErrInvalid, op.Kind)
}

func draftOf(m *Message, payload func(sum string) (io.ReadCloser, int64, error)) ctxdir.Draft {
	switch {
	case m.Erased:
		return ctxdir.Draft{ID: m.ID, Unavailable: ctxdir.ErrErased}
	case m.Envelope == nil:
		return ctxdir.Draft{ID: m.ID, Unavailable: ctxdir.ErrDamaged}
	}
	return ctxdir.Draft{ID: m.ID, Envelope: m.Envelope, Payload: payload}
}

var _ Peer = (*Folder)(nil)
