package importer

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Main is the branch of a history's first line of conversation.
const Main = "main"

// Record is one message of a history.
type Record struct {
	ID       uuid.UUID // unique among the records of one history
	OriginID string    // the record's own id, if it is not ID

	// Properties that the body reveals without knowledge of the framework; zero if it reveals none.
	Role      string
	Type      string
	CreatedAt time.Time

	// CopyOf and Repeats name earlier records of the history. CopyOf: they have the text of this one, as a whole. Repeats:
	// this one has their text, beside more. Erasing a record for good also erases the records that name it, and those in
	// its CopyOf.
	CopyOf, Repeats []uuid.UUID

	// Body is the input record: one JSON object without insignificant white space, otherwise verbatim. It is nil only
	// for an unreadable message that a [Conversation] returns.
	Body json.RawMessage

	says says
}

// Info describes a history as a whole.
type Info struct {
	ID      uuid.UUID // derived from Format and Session, or from the beginning of the history
	Format  Format
	Session string // the original id of the conversation; may be empty

	Title     string            // the tool's own title, else the beginning of the first prompt
	TitleFrom uuid.UUID         // the record whose text the title is; uuid.Nil for a title that is not a record's
	Model     string            // the first model
	Labels    map[string]string // [LabelProject], [LabelGitBranch], [LabelRepository]; the store adds "tool"
	Parent    uuid.UUID         // the context that this one continues or works for; uuid.Nil if none
	CreatedAt time.Time         // of the first message
	UpdatedAt time.Time         // of the last message

	// Extra holds the members of an export beside its messages: an object of at most [MaxExtra] bytes, or nil.
	Extra json.RawMessage

	// Replaces means that the source is not a log but the whole state of a conversation: its values replace those of an
	// earlier state. StateAt is the time of the state, zero if unknown.
	Replaces bool
	StateAt  time.Time
}

// Labels that an import sets.
const (
	LabelProject    = "project"    // the folder in which the tool worked
	LabelGitBranch  = "git_branch" // the Git branch of that folder
	LabelRepository = "repository" // its Git repository: see [RepositoryName]
)

// label sets a label, unless it has a value or the text is empty.
func (info *Info) label(key, text string) {
	if text == "" || info.Labels[key] != "" {
		return
	}
	if info.Labels == nil {
		info.Labels = map[string]string{}
	}
	info.Labels[key] = text
}

// span extends the times of a conversation by the time of a message.
func (info *Info) span(at time.Time) {
	if at.IsZero() {
		return
	}
	if info.CreatedAt.IsZero() {
		info.CreatedAt = at
	}
	if at.After(info.UpdatedAt) {
		info.UpdatedAt = at
	}
}

// MaxExtra limits [Info.Extra], in bytes. Larger members become the only message of a separate branch.
const MaxExtra = 64 << 10

// ErrChanged means that another writer changed the conversation during the import. The import begins again.
var ErrChanged = errors.New("another writer changed the conversation")

// Store receives imported histories.
type Store interface {
	// Open finds or creates the context with the id info.ID. An existing context keeps its description. Of a log, info has
	// what its first records say. The error of Open ends the import of the conversation.
	Open(ctx context.Context, info Info) (Conversation, error)
}

// Conversation is a context during an import. Only one goroutine uses it.
type Conversation interface {
	// Branches lists the branches. The importer calls it once, before any change.
	Branches(ctx context.Context) ([]Branch, error)

	// Messages returns stored messages of a branch, from position from on and before position to: at least one, and not
	// more than fit comfortably in memory. The importer uses only ID and Body.
	Messages(ctx context.Context, branch string, from, to int64) ([]Record, error)

	// Fork makes a branch that begins with the first at messages of the branch from; empty if from is "". It does not
	// switch to the branch. It stores attrs, which may be nil, with the branch.
	Fork(ctx context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error

	// Append stores records at the end of a branch, as one batch, durable on return. It fails with [ErrChanged] if the
	// branch does not hold exactly at messages, because another writer appended meanwhile. It keeps no reference to recs.
	Append(ctx context.Context, branch string, at int64, recs []Record) error

	// Replace gives stored messages of a branch other bodies, as one commit. The old versions go to the trash.
	Replace(ctx context.Context, branch string, recs []Record) error

	// Find returns the branch and the position of a stored message. ok is false if there is none.
	Find(ctx context.Context, id uuid.UUID) (branch string, at int64, ok bool, err error)

	// Times returns what an earlier import said: the time of the state that it stored, and that of the last message;
	// zero if unknown.
	Times() (stateAt, updatedAt time.Time)

	// SetActive makes a branch the active one, which people see first.
	SetActive(ctx context.Context, branch string) error

	// Describe completes the description of the context at the end of an import. It replaces what an earlier import
	// said, and keeps what people changed. changed says that the import stored messages.
	Describe(ctx context.Context, info Info, changed bool) error

	Close() error
}

// Branch is a branch of a context.
type Branch struct {
	Name string

	// Spans are the lines of the branch, oldest first, its own last. Each span covers its line from the end of the span
	// before up to To. Two branches share the messages of their common spans. An empty branch has one span with To 0.
	Spans []Span
}

// Span is the part of a branch that one line holds. It ends before position To.
type Span struct {
	Line uuid.UUID
	To   int64
}

// Len is the number of messages of the branch.
func (b *Branch) Len() int64 {
	if len(b.Spans) == 0 {
		return 0
	}
	return b.Spans[len(b.Spans)-1].To
}

// shared is the number of messages that two branches share because one was forked from the other, or both from a third.
// A line begins at one place of one line: if two branches share the line of the next span, this span is the same in
// both.
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

// says is what a record has in common with other records of its history. A format fills it in; [repeats] finds the other
// records.
type says struct {
	texts []key    // of the record: a record for no reader with one of them is its copy
	parts []key    // texts of other records, which it repeats beside more
	calls []key    // tool calls that it makes, answers or reports
	about []string // ids in the tool of the records of which it is a copy

	spawns []key     // the texts with which its calls begin sidechains
	task   key       // of a record that begins a sidechain: that text
	gives  []argText // the texts in the arguments of its calls
	echo   []argText // texts beside the answer to a call, which may repeat the arguments
}

// argText is a text in the arguments of a call.
type argText struct{ call, text key }
