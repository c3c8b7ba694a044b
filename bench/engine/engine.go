// Package engine puts the library and what people would pick instead behind one interface, each used the way a
// good engineer would use it. None is tuned down: where a peer has a faster way that gives the same promises,
// it is taken, and said in the engine's About.
package engine

import (
	"github.com/google/uuid"
)

// Message is a message to be stored.
type Message struct {
	ID   uuid.UUID
	Role string
	Type string
	Body []byte // a JSON object without insignificant white space
}

// Stored is a message as an engine gives it back. Body may be valid only until the next call.
type Stored struct {
	ID       uuid.UUID
	Position int64
	Body     []byte
}

// BranchInfo is what an engine tells of a branch without reading its messages.
type BranchInfo struct {
	Name     string
	Messages int64
	Bytes    int64
}

// Summary is one context in a list.
type Summary struct {
	ID       string
	Title    string
	Messages int64
	Bytes    int64
}

// Durability says what a write that returned has survived.
type Durability int

const (
	// Full: a power cut.
	Full Durability = iota
	// Relaxed: the end of the process.
	Relaxed
)

// Main is the branch every context begins with.
const Main = "main"

// Engine is a way to keep conversations.
type Engine struct {
	Name  string // short, for tables: "SQLite (modernc)"
	About string // how it is used here
	// Module is the Go module whose version is reported, empty for none.
	Module string
	// Largest is how many messages a context may have before rows leave the engine out, 0 for no bound: where
	// each append rewrites the whole, a million tell nothing new and take hours.
	Largest int64
	// Alone says why several processes cannot append to one context, empty when they can.
	Alone string
	// Open opens the store in dir, making it when there is none.
	Open func(dir string, d Durability) (Store, error)
	// Finish, if there is one, runs once after a benchmark has filled a context and closed it.
	Finish func(dir string) error
}

// Store is an open store of contexts.
type Store interface {
	// Create makes an empty context and returns its id.
	Create(title string) (string, error)
	// Context opens a branch of a context.
	Context(id, branch string) (Context, error)
	// List describes all contexts.
	List() ([]Summary, error)
	Close() error
}

// Context is an open context, at one of its branches.
type Context interface {
	// Branches describes all branches of the context.
	Branches() ([]BranchInfo, error)
	// Append adds one message.
	Append(m Message) error
	// AppendBatch adds messages, with one sync.
	AppendBatch(ms []Message) error
	// Last returns the newest n messages, oldest first.
	Last(n int) ([]Stored, error)
	// Range returns the messages at the positions [from, to).
	Range(from, to int64) ([]Stored, error)
	// All calls f for every message.
	All(f func(Stored) error) error
	// ByID returns the message of an id.
	ByID(id uuid.UUID) (Stored, error)
	// Fork adds a branch that begins with the first at messages of this one.
	Fork(name string, at int64) error
	// Settle waits for what the engine does in the background.
	Settle() error
	Close() error
}

// Starter is a Store that creates a context together with its first message.
type Starter interface {
	// Start creates a context, adds its first message, and closes the context.
	Start(title string, first Message) error
}

// Labelled is a Store that lists contexts by a label.
type Labelled interface {
	// Label gives the context the label "user".
	Label(id, user string) error
	// ListLabel describes the contexts with that label, the most recently changed first, and at most limit of them.
	ListLabel(user string, limit int) ([]Summary, error)
}

// Changer is a Context with what is more than messages: state, labels, and branches that change.
type Changer interface {
	// AppendWithState adds one message and sets the state of the context, as one commit.
	AppendWithState(m Message, state []byte) error
	// State returns the state of the context.
	State() ([]byte, error)
	// Rewind leaves only the first n messages on the branch.
	Rewind(n int64) error
	// Rename renames a branch.
	Rename(branch, to string) error
	// Label gives the context the label "user".
	Label(user string) error
}

// Flusher is a Context that makes message files behind the commits.
type Flusher interface {
	// Flush waits for the message files.
	Flush() error
}

// Builder is a Context that can be filled faster than by batches. It is for preparing a benchmark, never for
// what is measured.
type Builder interface {
	Build(n int64, message func(i int64) Message) error
}

// Build fills an empty context.
func Build(c Context, n int64, message func(i int64) Message) error {
	if b, ok := c.(Builder); ok {
		return b.Build(n, message)
	}
	const at = 1000
	batch := make([]Message, 0, at)
	for i := range n {
		batch = append(batch, message(i))
		if len(batch) == at || i == n-1 {
			if err := c.AppendBatch(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return c.Settle()
}

// Names of engines that goals compare with.
const (
	Ours     = "ctxdir"
	Blobs    = "ctxdir, long texts in blobs"
	Archived = "ctxdir, archived"
	Modernc  = "SQLite (modernc)"
	Mattn    = "SQLite (mattn)"
	Bolt     = "bbolt"
	Lines    = "JSON Lines"
	PerFile  = "file per message"
	Whole    = "one document"
)

// All returns the engines this program was built with, ours first, and why others are missing.
func All() (all []*Engine, missing []string) {
	all = []*Engine{ctxdirEngine, moderncEngine}
	if mattnEngine != nil {
		all = append(all, mattnEngine)
	} else {
		missing = append(missing, Mattn+": built without cgo")
	}
	return append(all, boltEngine, linesEngine, perFileEngine, wholeEngine), missing
}

// Reading returns all engines for rows that read: ours is there twice more, with its default for long texts and with
// archived messages.
func Reading() []*Engine {
	all, _ := All()
	return append(all, withBlobs, archivedEngine)
}

// Named returns the engine of a name, nil when there is none.
func Named(name string) *Engine {
	for _, e := range Reading() {
		if e.Name == name {
			return e
		}
	}
	return nil
}
