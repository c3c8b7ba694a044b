package importer

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Main is the branch that a history's first line of conversation goes to.
const Main = "main"

// Record is one message of a history.
type Record struct {
	ID       uuid.UUID // unique among the records of one history
	OriginID string    // the id it bears in the history, where that is not ID

	// What can be told of the body without knowing the framework; empty or zero where nothing can.
	Role      string
	Type      string
	CreatedAt time.Time

	// Body is the input record: one JSON object without insignificant white space, otherwise verbatim. It
	// is nil only in what a [Conversation] returns, for a message that cannot be read.
	Body json.RawMessage
}

// Info is what a history says about itself as a whole.
type Info struct {
	ID      uuid.UUID // derived from Format and Session, or from how the history begins
	Format  Format
	Session string // the id of the conversation where it came from; may be empty

	// Told from the beginning of the history: later states of it have the same, or more.
	Title     string
	Model     string
	CreatedAt time.Time

	// Extra holds the members that an export has beside its messages: an object of at most
	// [MaxExtra] bytes, or nil.
	Extra json.RawMessage
}

// MaxExtra bounds the members of an export that are kept in [Info.Extra]. Where there is more, they become
// the one message of a branch of their own.
const MaxExtra = 64 << 10

// Store is what histories are imported into.
type Store interface {
	// Open finds or creates the context with the id info.ID. A context that is there already keeps what it
	// says about itself; Open fills in what it lacks, so that importing an early state of a history, then a
	// later one, ends like importing the later one alone.
	Open(ctx context.Context, info Info) (Conversation, error)
}

// Conversation is one context while a history is imported into it. It is used by one goroutine.
type Conversation interface {
	// Branches lists the branches. It is called once, before anything is changed.
	Branches(ctx context.Context) ([]Branch, error)

	// Messages returns stored messages of a branch from position from on, before position to: at least one,
	// and not more than fit comfortably into memory. Only ID and Body are looked at.
	Messages(ctx context.Context, branch string, from, to int64) ([]Record, error)

	// Fork makes a branch that begins with the first at messages of the branch from, or empty where from is
	// "". It does not switch to it. attrs are remembered with the branch; they may be nil.
	Fork(ctx context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error

	// Append stores records at the end of a branch, durably on return and as one batch. It fails where the
	// branch does not hold exactly at messages: someone else has written meanwhile. It keeps no reference
	// to recs.
	Append(ctx context.Context, branch string, at int64, recs []Record) error

	// SetActive makes a branch the one that people see first.
	SetActive(ctx context.Context, branch string) error

	Close() error
}

// Branch is a branch as it stands in a context.
type Branch struct {
	Name string

	// Spans are the lines the branch is made of, oldest first, its own at the end: of each line, what lies
	// between the end of the span before it and To. Two branches share the messages of the spans they have
	// in common. An empty branch has one span with To 0.
	Spans []Span
}

// Span is the part of a branch that one line owns. It ends before position To.
type Span struct {
	Line uuid.UUID
	To   int64
}

// Len is the number of messages the branch shows.
func (b *Branch) Len() int64 {
	if len(b.Spans) == 0 {
		return 0
	}
	return b.Spans[len(b.Spans)-1].To
}

// shared is the number of messages that two branches have in common because one was forked from the
// other, or both from a third. A line begins at one place of one line: where two branches have the next
// span's line in common, this span is the same in both.
func shared(a, b []Span) (n int64) {
	for i := 0; i < len(a) && i < len(b) && a[i].Line == b[i].Line; i++ {
		n = min(a[i].To, b[i].To)
	}
	return n
}

// owner is the line that holds the message at a position.
func owner(spans []Span, at int64) uuid.UUID {
	for _, s := range spans {
		if at < s.To {
			return s.Line
		}
	}
	return uuid.Nil
}
