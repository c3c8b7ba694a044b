package ctxdir

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// End is a position beyond every message.
const End = math.MaxInt64

// Branch is a branch of an open context, identified by its name. It stays valid when the branch is rewound. After a
// rename or a removal, operations fail with [ErrNotExist].
type Branch struct {
	e *engine.Branch
}

func newBranch(e *engine.Branch, err error) (*Branch, error) {
	if err != nil {
		return nil, err
	}
	return &Branch{e}, nil
}

// BranchInfo describes a branch. All of it comes from the index.
type BranchInfo struct {
	Name     string
	Line     uuid.UUID
	Active   bool
	Parent   string          // the branch whose line this one was forked from, or the id of that line; empty for none
	Base     int64           // number of inherited messages
	From     string          // the earlier branch that shares the most messages with this one; empty for none
	Shared   int64           // number of messages that both begin with
	Messages int64           // number of messages that the branch shows
	Bytes    int64           // of the messages of its own line
	Archived int64           // the part of Bytes whose messages have no files
	Lines    []Span          // the lines that own the messages which the branch shows, in order; the last one is Line
	Extra    json.RawMessage // an object: members that this program does not know
}

// Span is the part of a line that a branch shows: the positions from the end of the span before up to End.
type Span struct {
	Line uuid.UUID
	End  int64
}

func branchInfos(from []engine.BranchInfo) []BranchInfo {
	infos := make([]BranchInfo, len(from))
	for i, e := range from {
		infos[i] = BranchInfo{
			Name: e.Name, Line: e.Line, Active: e.Active, Parent: e.Parent, Base: e.Base, From: e.From, Shared: e.Shared, Messages: e.Messages,
			Bytes: e.Bytes, Archived: e.Archived, Extra: raw(e.Metadata),
		}
		for _, l := range e.Lines {
			infos[i].Lines = append(infos[i].Lines, Span{l.Line, l.To})
		}
	}
	return infos
}

// Name returns the name of the branch.
func (b *Branch) Name() string { return b.e.Name() }

// Len returns the number of messages that the branch shows.
func (b *Branch) Len(ctx context.Context) (int64, error) {
	return b.e.Len(ctx)
}

// Messages yields the messages at the positions [from, to) in order, and reads ahead while the caller works. Positions
// that do not exist yield nothing: Messages(ctx, 0, End) is the whole branch. A message that cannot be read has
// Unavailable set; an error ends the sequence.
func (b *Branch) Messages(ctx context.Context, from, to int64) iter.Seq2[*Message, error] {
	return each(b.e.Between(ctx, from, to), message)
}

// Range returns the messages at the positions [from, to). Positions beyond the end yield nothing; a negative one fails
// with [ErrPosition].
func (b *Branch) Range(ctx context.Context, from, to int64) ([]*Message, error) {
	return all(b.e.Range(ctx, from, to))
}

// Last returns the newest n messages in order.
func (b *Branch) Last(ctx context.Context, n int) ([]*Message, error) {
	return all(b.e.Last(ctx, n))
}

func all(from []*loader.Message, err error) ([]*Message, error) {
	if err != nil {
		return nil, err
	}
	return messages(from), nil
}

// Message returns the message with an id, without a scan. It fails with [ErrNotExist] when the branch does not show it.
// A message that cannot be read has Unavailable set.
func (b *Branch) Message(ctx context.Context, id uuid.UUID) (*Message, error) {
	m, err := b.e.Message(ctx, id)
	return message(m), err
}

// PositionAt returns the position at which the branch reaches a time: the message there is of that time or later, and
// the one before it is earlier. It returns 0 if the branch begins later, and the number of messages if it ends earlier.
// Where the times of the messages do not ascend, several positions may qualify; PositionAt returns one of them, always
// the same. The time of a message is CreatedAt, or StoredAt if it has none; an unavailable message has the time of the
// next available one. PositionAt searches by bisection: it reads about 20 messages of a million.
func (b *Branch) PositionAt(ctx context.Context, t time.Time) (int64, error) {
	return b.e.PositionAt(ctx, t)
}

// Fork adds a branch that begins with the first n messages of this one, and has its system prompt. It copies nothing,
// reads no message, and does not switch to the new branch. It fails with [ErrInvalid], [ErrExist] or [ErrPosition].
func (b *Branch) Fork(ctx context.Context, name string, n int64) (*Branch, error) {
	return newBranch(b.e.Fork(ctx, name, n))
}

// Rewind makes the branch show only its first n messages. The others stay as long as other branches show them; the
// trash lists the rest, and a collection removes it after the grace period.
func (b *Branch) Rewind(ctx context.Context, n int64) error { return b.e.Rewind(ctx, n) }

// Rename renames the branch, and returns it under its new name. The folder of its messages keeps its name. Rename fails
// with [ErrNotExist], [ErrInvalid] or [ErrExist].
func (b *Branch) Rename(ctx context.Context, to string) (*Branch, error) {
	c := b.e.Context()
	if err := c.Rename(ctx, b.Name(), to); err != nil {
		return nil, err
	}
	return newBranch(c.Branch(to))
}

// Remove removes the branch. Its messages stay as long as other branches show them; the trash lists the rest, and a
// collection removes it after the grace period. Remove fails with [ErrInvalid] for the active branch.
func (b *Branch) Remove(ctx context.Context) error { return b.e.Context().Remove(ctx, b.Name()) }

// SystemPrompt returns the system prompt of the branch as it was given, or nil if it has none. [Metadata] has a
// reference instead.
func (b *Branch) SystemPrompt(ctx context.Context) (json.RawMessage, error) {
	return b.e.Context().SystemPrompt(ctx, b.Name())
}

// State returns your state on the branch, or nil if it has none.
func (b *Branch) State() (json.RawMessage, error) {
	at := metadata(b.e.Context().Current()).Branch(b.Name())
	if at == nil {
		return nil, b.missing("read the state of")
	}
	return at.State, nil
}

// SetState replaces your state on the branch; nil removes it. SetState takes [WriteOptions].Sequence.
func (b *Branch) SetState(ctx context.Context, state json.RawMessage, opts ...WriteOptions) error {
	missing := b.missing("set the state of")
	err := b.e.Context().Update(ctx, updateOf(func(m *Metadata) error {
		at := m.Branch(b.Name())
		if at == nil {
			return missing
		}
		at.State = state
		return nil
	}), writeOptions(opts)...)
	if errors.Is(err, missing) {
		return missing
	}
	return err
}

func (b *Branch) missing(op string) error {
	return &Error{Op: op, Context: b.e.Context().ID(), Branch: b.Name(), Err: ErrNotExist}
}
