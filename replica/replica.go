// Package replica brings two copies of conversations together: both sides keep what they wrote, an erase reaches every
// copy, and nothing travels twice. Its API may change with any version.
//
// [Sync] compares a store with a peer: another store, here or elsewhere. A conversation is compared branch by branch, as a
// sequence of message ids, with what both sides had when they last agreed:
//
//   - A side that did not change takes what the other one has: messages, branches, names, a rewind, a removal.
//   - Where both went on, the peer keeps the name, and the local messages move to the branch NAME~HOST. Nothing is merged,
//     and nothing is lost.
//   - Of two versions of a message, or of a member of the metadata, the later one counts. The other version stays in the trash.
//   - A message that one side erased is erased on the other one.
//
// Everything that Sync changes in one conversation is one commit there, as far as its size permits, under the condition that
// nothing else was committed meanwhile. So Sync may be interrupted at any point, and begin again.
//
// docs/SYNC.md describes what travels, and the protocol.
package replica

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Peer is a store that Sync brings together with another one. Each call may be a round trip, so each takes work for many
// contexts. A peer that cannot be reached fails with its own errors; what fails for one context is in its result.
type Peer interface {
	// Store returns the id of the store.
	Store(ctx context.Context) (uuid.UUID, error)
	// Contexts returns the states of the contexts that are not as in known, which maps ids to commits: of those that changed,
	// of those that known lacks, and of those that are no longer there.
	Contexts(ctx context.Context, known map[uuid.UUID]string) ([]State, error)
	// Heads describes contexts, in the order of the requests.
	Heads(ctx context.Context, of []HeadRequest) ([]Head, error)
	// Rows returns the rows of ranges, in their order.
	Rows(ctx context.Context, of []Range) ([][]Row, error)
	// Read returns messages of ranges, in their order: the first one at least, and more while their size is below size.
	Read(ctx context.Context, of []Range, size int64) ([]Message, error)
	// Have says which payloads the peer has, of those with these SHA-256 sums in hexadecimal digits.
	Have(ctx context.Context, sums []string) ([]bool, error)
	// Get calls f with each payload that the peer has.
	Get(ctx context.Context, of []PayloadOf, f func(sum string, size int64, r io.Reader) error) error
	// Apply makes changes, each as one commit, and returns their results in order. payload returns the payloads to which new
	// messages refer, for those that the peer lacks; it fails with [io/fs.ErrNotExist] for one that nobody has.
	Apply(ctx context.Context, changes []Change, payload func(sum string) (io.ReadCloser, int64, error)) ([]Result, error)
	// Digests reads all of contexts, and returns what they have, in order.
	Digests(ctx context.Context, of []uuid.UUID) ([]Digest, error)
}

// State is the state of a context.
type State struct {
	ID      uuid.UUID
	Commit  string // names the state; empty if the context is not there, or cannot be read
	Removed bool   // it is in the trash
}

// HeadRequest asks for a Head.
type HeadRequest struct {
	ID    uuid.UUID
	Since string // the commit at which both sides last agreed; empty for none
}

// Head is what a context shows at one commit.
type Head struct {
	Commit   string
	Sequence uint64
	// Continues says that the history of the context has the commit Since. Then Changed has the rows of messages that were
	// appended, replaced or erased after it; else of those that are erased.
	Continues bool
	Changed   []ctxdir.Row
	Meta      Meta
	Branches  []Branch // in order of creation
	Err       error    // why there is nothing else
}

// Branch is a branch of a Head.
type Branch struct {
	Name  string
	Lines []ctxdir.Span // as in [ctxdir.BranchInfo]
}

// Len returns the number of messages that the branch shows.
func (b *Branch) Len() int64 {
	if len(b.Lines) == 0 {
		return 0
	}
	return b.Lines[len(b.Lines)-1].End
}

// Line returns the line at which the branch points.
func (b *Branch) Line() uuid.UUID {
	if len(b.Lines) == 0 {
		return uuid.Nil
	}
	return b.Lines[len(b.Lines)-1].Line
}

// Range is the positions [From, To) of a line, with those that it inherits: a name may point at another line meanwhile.
type Range struct {
	ID       uuid.UUID // of the context
	Line     uuid.UUID
	From, To int64
	Sums     bool // of the messages, for Rows
}

// Row is a row of the index.
type Row struct {
	ctxdir.Row
	Sum uint64 // a checksum of the message itself, if it was asked for
}

// Message is a message on its way.
type Message struct {
	Of       int // the index of its range, from Read
	Position int64
	ID       uuid.UUID
	Envelope json.RawMessage // see [ctxdir.Message.Envelope]; nil if the message is not available
	Erased   bool
	Payloads []string // SHA-256 sums, in hexadecimal digits
}

// PayloadOf names a payload, and a message that has it.
type PayloadOf struct {
	Sum     string
	ID      uuid.UUID // of the context
	Line    uuid.UUID
	Message uuid.UUID
}

// Change is a change of a context.
type Change struct {
	ID       uuid.UUID
	Create   *Meta   // of the context, unless it is there
	Sequence *uint64 // the newest commit must have this number
	Ops      []Op    // one commit
	Erase    []uuid.UUID
	Remove   bool // the context, to the trash
}

// OpKind says what an Op does.
type OpKind string

// The kinds of operations on a context.
const (
	OpRename   OpKind = "rename"  // Branch to To
	OpNew      OpKind = "new"     // an empty branch
	OpFork     OpKind = "fork"    // Branch from the first N messages of From
	OpRewind   OpKind = "rewind"  // Branch to its first N messages
	OpRemove   OpKind = "remove"  // Branch
	OpAppend   OpKind = "append"  // Messages to Branch
	OpReplace  OpKind = "replace" // a message of Branch by the one of Messages
	OpMetadata OpKind = "metadata"
)

// Op is one operation of a Change.
type Op struct {
	Kind     OpKind
	Branch   string
	To       string
	From     string
	N        int64
	Messages []Message
	Meta     *Meta // what the metadata is from now on
}

// Result is the result of a Change.
type Result struct {
	Commit   string // empty if more than this change may have been committed
	Sequence uint64
	Branches []Branch
	Err      error
}

// Meta is the metadata that travels: all but lines, folders and revisions.
type Meta struct {
	Title      string            `json:"title,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	ParentID   uuid.UUID         `json:"parent_id,omitzero"`
	Kind       string            `json:"kind,omitempty"`
	ExternalID string            `json:"external_id,omitempty"`
	Config     json.RawMessage   `json:"config,omitempty"`
	State      json.RawMessage   `json:"state,omitempty"`
	Extra      json.RawMessage   `json:"extra,omitempty"`
	Active     string            `json:"active_branch"`
	Branches   []BranchMeta      `json:"branches"`
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at"`
}

// BranchMeta is the metadata of a branch.
type BranchMeta struct {
	Name         string          `json:"name"`
	SystemPrompt json.RawMessage `json:"system_prompt,omitempty"` // as it was given
	State        json.RawMessage `json:"state,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty"`
}

// Digest is what a context has, read back and opened: two sides with the same Sum have the same branches, messages and payloads.
type Digest struct {
	Sequence uint64 // of the newest commit
	Messages int64  // in the context, each once
	Sum      [sha256.Size]byte
	// Err says why there is nothing else. It wraps [ctxdir.ErrDamaged] if a message, or a payload, cannot be read.
	Err error
}

// String is the sum in hexadecimal digits.
func (d *Digest) String() string { return hex.EncodeToString(d.Sum[:]) }

// chunk is the size of messages that are in memory at once, in bytes.
const chunk = 1 << 20
