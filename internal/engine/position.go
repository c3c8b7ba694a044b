package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
)

// PositionAt returns a position at which the branch passes a time: the message there is of that time or later, and the
// one before is earlier. 0 stands for a branch that begins later, and the end for one that ends earlier. If the times
// of the messages ascend, there is only one such position; otherwise PositionAt returns one of them, always the same.
// The time of a message is CreatedAt, or StoredAt without it. An unavailable message has the time of the next one that
// is available. PositionAt reads as many messages as a binary search needs.
func (b *Branch) PositionAt(ctx context.Context, at time.Time) (int64, error) {
	var from int64
	to, err := b.Len(ctx)
	for from < to && err == nil {
		middle := from + (to-from)/2
		var m *Message
		if m, err = b.availableFrom(ctx, middle, to); m != nil && TimeOf(m).Before(at) {
			from = m.Position + 1
		} else {
			to = middle
		}
	}
	if err != nil {
		return 0, err
	}
	return from, nil
}

// availableFrom returns the first available message at the positions [from, to), nil for none.
func (b *Branch) availableFrom(ctx context.Context, from, to int64) (*Message, error) {
	for n := int64(1); from < to; n = min(2*n, 256) {
		messages, err := b.Range(ctx, from, min(from+n, to))
		if err != nil || len(messages) == 0 {
			return nil, err
		}
		for _, m := range messages {
			if m.Unavailable == nil {
				return m, nil
			}
		}
		from += int64(len(messages))
	}
	return nil, nil
}

// Around returns the message with an id, up to before messages before it and up to after messages after it, in order.
// It fails like [Branch.Message].
func (b *Branch) Around(ctx context.Context, id uuid.UUID, before, after int) ([]*Message, error) {
	if before < 0 || after < 0 {
		return nil, b.fail("read", fmt.Errorf("%w: a window of %d messages before and %d after", ErrInvalid, before, after))
	}
	m, err := b.Message(ctx, id)
	if err != nil {
		return nil, err
	}
	end := int64(math.MaxInt64)
	if int64(after) < end-m.Position {
		end = m.Position + int64(after) + 1
	}
	return b.Range(ctx, max(m.Position-int64(before), 0), end)
}

// TimeOf returns the time of a message, or else that of its commit.
func TimeOf(m *Message) time.Time {
	if m.CreatedAt.IsZero() {
		return m.StoredAt
	}
	return m.CreatedAt
}
