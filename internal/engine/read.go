package engine

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Message is one stored message. Callers must not change it, since others share it.
type Message = loader.Message

// Len returns the number of messages that the branch shows.
func (b *Branch) Len(ctx context.Context) (int64, error) {
	err := ctx.Err()
	var n int64
	if err == nil {
		n, err = Use(b.c, func() (int64, error) { return b.c.length(b.c.Current(), b.name) })
	}
	return n, b.fail("count", err)
}

// Messages yields every message in order, reading ahead while the caller works. An unavailable message has Unavailable
// set; an error ends the sequence.
func (b *Branch) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return b.From(ctx, 0)
}

// From is Messages of the positions from position on.
func (b *Branch) From(ctx context.Context, position int64) iter.Seq2[*Message, error] {
	return b.Between(ctx, position, math.MaxInt64)
}

// Between is Messages of the positions [from, to). It ignores positions before the first message and beyond the last.
func (b *Branch) Between(ctx context.Context, from, to int64) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		spans, err := Use(b.c, func() ([]loader.Span, error) { return b.spans(max(from, 0), to) })
		if err == nil {
			err = b.c.Loader.Each(ctx, spans, b.c.use, func(m *Message) bool { return yield(m, nil) })
		}
		if err != nil {
			yield(nil, b.fail("read", err))
		}
	}
}

// Load returns every message of the branch.
func (b *Branch) Load(ctx context.Context) ([]*Message, error) {
	return b.Range(ctx, 0, math.MaxInt64)
}

// Range returns the messages at the positions [from, to). It ignores positions beyond the end; a negative position
// fails with [ErrPosition].
func (b *Branch) Range(ctx context.Context, from, to int64) ([]*Message, error) {
	if from < 0 || to < from {
		return nil, b.fail("read", fmt.Errorf("%w: the range %d:%d is not valid", ErrPosition, from, to))
	}
	return b.read(ctx, from, to)
}

// Last returns the newest n messages in order.
func (b *Branch) Last(ctx context.Context, n int) ([]*Message, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	return b.read(ctx, -int64(n), math.MaxInt64)
}

func (b *Branch) read(ctx context.Context, from, to int64) ([]*Message, error) {
	messages, err := Use(b.c, func() ([]*Message, error) {
		spans, err := b.spans(from, to)
		if err != nil {
			return nil, err
		}
		return b.c.Loader.Range(ctx, spans)
	})
	return messages, b.fail("read", err)
}

// Message returns the message with an id, without a scan. It fails with [ErrNotExist] when the branch shows no such
// message. An unavailable message has Unavailable set.
func (b *Branch) Message(ctx context.Context, id uuid.UUID) (*Message, error) {
	m, err := Use(b.c, func() (*Message, error) {
		at, err := b.find(id)
		if err != nil {
			return nil, err
		}
		return b.c.Loader.Load(ctx, at.Span, &at.Entry)
	})
	return m, Wrap(Error{Op: "read", Context: b.c.Dir.ID, Branch: b.name, ID: id}, err)
}

// Find looks up an id among the messages that the branch shows.
func (b *Branch) find(id uuid.UUID) (at Place, err error) {
	m := b.c.Current()
	line, err := lineOf(m, b.name)
	if err != nil {
		return Place{}, err
	}
	return b.c.Find(m, line, id)
}
