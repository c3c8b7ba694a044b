// Package legacy reads and writes the contexts of the program that came before: one JSON file for each, or a folder.
//
// A *node* is a message with what the old program kept beside it: {"id", "message", "parent_id"}. The *pool* is the map of all
// nodes, by key. A *branch* is a name with a *list*, its message_ids, which are keys of the pool. A *generation* is a state of the
// format: the file with everything in it ([Monolithic]; its states were spelled in three ways), and the folder with the nodes in
// files of their own ([Split]).
//
// Nothing in such a file is believed: not that keys are UUIDs, nor that they are there once, nor that a list names what the pool has.
// What is not known is kept as it is spelled. A file is read in passes; what is in memory is one node, the lists, and 32 bytes for
// each node. The package knows nothing of stores: docs/FORMAT.md, "Legacy", says what becomes of the parts.
package legacy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Format is what lies at a path.
type Format string

const (
	None       Format = ""             // nothing that is known here
	Monolithic Format = "legacy"       // a file with a whole context, of any generation
	Split      Format = "legacy-split" // a folder with context.json and messages_pool/
	Context    Format = "ctxdir"       // the folder of a context of this program
)

// Legacy reports whether a format is one of those that are migrated.
func (f Format) Legacy() bool { return f == Monolithic || f == Split }

// Names in the folder of a split context.
const (
	ContextFile = "context.json"
	PoolFolder  = "messages_pool"
	PromptFile  = "system_prompt.json"
	nodeEnd     = ".json"
)

// Names of members that are known.
const (
	nameID      = "id"
	namePool    = "message_pool"
	nameList    = "message_ids"
	nameMessage = "message"

	// NameBranches is the member with the branches.
	NameBranches = "branches"
	// NamePool is the member with the nodes.
	NamePool = namePool
	// NameList is the member of a branch with its list.
	NameList = nameList
)

// Errors that callers tell apart.
var (
	// ErrNotLegacy is wrapped when there is no legacy context at a path.
	ErrNotLegacy = errors.New("not a legacy context")
	// ErrDamaged is wrapped when a legacy context cannot be read to its end.
	ErrDamaged = errors.New("damaged legacy context")
	// ErrTooLarge is wrapped when a node is larger than the limit.
	ErrTooLarge = errors.New("a message is too large")
	// ErrChanged is wrapped when a file is no longer what was read before.
	ErrChanged = errors.New("the legacy context changed meanwhile")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// verbatim is how JSON is read and written: nothing is spelled anew.
var verbatim = []jsontext.Options{
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true),
	jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
}

// maxDepth is how deep a value may be nested that is no message: it goes into metadata.json, which is read by others too.
const maxDepth = 1000

// compacted returns a copy of a JSON value without white space. It fails with ErrDamaged when it is none, or none in UTF-8.
func compacted(v []byte) (jsontext.Value, error) {
	if !utf8.Valid(v) {
		return nil, damaged("a text is not valid UTF-8")
	}
	out, err := jsontext.AppendFormat(nil, v, verbatim...)
	if err != nil {
		return nil, damaged("%v", err)
	}
	return out, nil
}

// shallow is compacted for what is no message.
func shallow(v []byte) (jsontext.Value, error) {
	out, err := compacted(v)
	if err != nil {
		return nil, err
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(out), verbatim...)
	for d.PeekKind() != 0 {
		if _, err := d.ReadToken(); err != nil {
			return nil, damaged("%v", err)
		}
		if d.StackDepth() > maxDepth {
			return nil, damaged("nested more than %d deep", maxDepth)
		}
	}
	return out, nil
}

// Text is the content of a JSON string, false for anything else.
func Text(v jsontext.Value) (string, bool) {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return "", false
	}
	return s, true
}

// Quote is the JSON string of a text.
func Quote(s string) jsontext.Value {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimRight(b.Bytes(), "\n")
}

// key is what a key of the pool is known by: a UUID in its one spelling is itself, anything else a hash. canonical tells which.
type key [16]byte

func keyOf(text string) (k key, canonical bool) {
	if id, ok := parseID(text); ok {
		return key(id), true
	}
	sum := sha256.Sum256([]byte(text))
	return key(sum[:16]), false
}

// KeyOf is what a key of the pool is known by.
func KeyOf(text string) [16]byte {
	k, _ := keyOf(text)
	return k
}

// parseID reads a UUID in its one valid spelling: 36 characters, lower case, not all zero.
func parseID(s string) (uuid.UUID, bool) {
	if len(s) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id != uuid.Nil && id.String() == s
}

// ParseID reads an id of a legacy context that can be an id here too.
func ParseID(v jsontext.Value) (uuid.UUID, bool) {
	s, ok := Text(v)
	if !ok {
		return uuid.Nil, false
	}
	return parseID(s)
}

// space is the UUIDv5 namespace of ids of contexts that are no UUIDs. Another one would make those be migrated twice.
var space = uuid.MustParse("0d2d1f0e-53a6-5f0b-8f0c-6d6f6e6f6c69")
