package ctxdir

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// Query says which messages of a branch to read. The zero value means all of them, in order.
type Query struct {
	From, To int64     // the positions [From, To); a To of 0 means [End]
	After    uuid.UUID // only messages behind the one with this id
	Roles    []string  // only messages with one of these roles; empty for any
	Types    []string  // only messages with one of these types; empty for any
	Backward bool      // the newest first
}

// chunk is how many messages a query reads at once backward.
const chunk = 64

// Query yields the messages that q asks for. It reads what it yields and what it passes over, a few at a time: break out
// of the loop when you have enough. A message that cannot be read has Unavailable set; without a role and a type, it is
// passed over where q names some. An error ends the sequence: [ErrPosition] for a negative position, [ErrNotExist] if
// the branch does not show the message After.
func (b *Branch) Query(ctx context.Context, q Query) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		from, to, err := b.span(ctx, &q)
		if err != nil {
			yield(nil, err)
			return
		}
		for m, err := range b.read(ctx, from, to, q.Backward) {
			if (err != nil || q.matches(m)) && !yield(m, err) {
				return
			}
		}
	}
}

// span returns the positions that a query asks for.
func (b *Branch) span(ctx context.Context, q *Query) (from, to int64, err error) {
	if from, to = q.From, q.To; to == 0 {
		to = End
	}
	if from < 0 || to < 0 {
		err := fmt.Errorf("%w: positions %d to %d", ErrPosition, q.From, q.To)
		return 0, 0, &Error{Op: "query", Context: b.e.Context().ID(), Branch: b.Name(), Err: err}
	}
	if q.After != uuid.Nil {
		m, err := b.Message(ctx, q.After)
		if err != nil {
			return 0, 0, err
		}
		from = max(from, m.Position+1)
	}
	return from, to, nil
}

// read yields the messages at [from, to), the newest first if backward is set.
func (b *Branch) read(ctx context.Context, from, to int64, backward bool) iter.Seq2[*Message, error] {
	if !backward {
		return b.Messages(ctx, from, to)
	}
	return func(yield func(*Message, error) bool) {
		n, err := b.Len(ctx)
		for end := min(n, to); err == nil && from < end; {
			start := max(from, end-chunk)
			var some []*Message
			some, err = b.Range(ctx, start, end)
			for _, m := range slices.Backward(some) {
				if !yield(m, nil) {
					return
				}
			}
			end = start
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func (q *Query) matches(m *Message) bool {
	return (len(q.Roles) == 0 || slices.Contains(q.Roles, m.Role)) && (len(q.Types) == 0 || slices.Contains(q.Types, m.Type))
}
