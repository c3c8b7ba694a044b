// Package legacy reads and writes the contexts of ctxdir's predecessor: one JSON file each, or a folder.
//
// A *node* is a message with the members that the predecessor kept next to it: {"id", "message", "parent_id"}. The
// *pool* is the map of all nodes, by key. A *branch* is a name with a *list*, its message_ids, which are keys of the
// pool. A *generation* is a state of the format: the file that contains everything ([Monolithic], in three forms),
// or the folder with the nodes in separate files ([Split]).
//
// The package trusts nothing in such a file: keys need not be UUIDs or unique, and a list may name keys that the pool
// lacks. It keeps unknown parts verbatim. It reads a file in passes; memory holds one node, the lists, and 32 bytes
// for each node. The package knows nothing of stores. docs/LEGACY.md maps each part to its counterpart in a store.
package legacy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Format is the format of a path.
type Format string

const (
	None       Format = ""             // an unknown format
	Monolithic Format = "legacy"       // a file with a whole context, of any generation
	Split      Format = "legacy-split" // a folder with context.json and messages_pool/
	Context    Format = "ctxdir"       // the folder of a ctxdir context
)

// Legacy reports whether a migration converts the format.
func (f Format) Legacy() bool { return f == Monolithic || f == Split }

// Names in the folder of a split context.
const (
	ContextFile = "context.json"
	PoolFolder  = "messages_pool"
	PromptFile  = "system_prompt.json"
	nodeEnd     = ".json"
)

// Names of known members.
const (
	nameID      = "id"
	nameMessage = "message"

	// NameBranches is the member that holds the branches.
	NameBranches = "branches"
	// NamePool is the member that holds the nodes.
	NamePool = "message_pool"
	// NameList is the member of a branch that holds its list.
	NameList = "message_ids"
)

// Errors that callers distinguish.
var (
	// ErrNotLegacy means that a path is not a legacy context.
	ErrNotLegacy = errors.New("not a legacy context")
	// ErrDamaged means that a legacy context is not readable to its end.
	ErrDamaged = errors.New("damaged legacy context")
	// ErrTooLarge means that a node exceeds the limit.
	ErrTooLarge = errors.New("a message is too large")
	// ErrChanged means that a file differs from what was read before.
	ErrChanged = errors.New("the legacy context changed during the migration; retry")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// maxDepth limits the nesting of values other than messages: they go into metadata.json, which others read too.
const maxDepth = 1000

// compacted returns a copy of a JSON value without white space, or ErrDamaged if v is not valid JSON in UTF-8.
func compacted(v []byte) (jsontext.Value, error) {
	if !utf8.Valid(v) {
		return nil, damaged("a text is not valid UTF-8")
	}
	out, err := jsontext.AppendFormat(nil, v, message.Verbatim...)
	if err != nil {
		return nil, damaged("%v", err)
	}
	return out, nil
}

// shallow is compacted with maxDepth, for values other than messages.
func shallow(v []byte) (jsontext.Value, error) {
	out, err := compacted(v)
	if err != nil {
		return nil, err
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(out), message.Verbatim...)
	for d.PeekKind() != 0 {
		if _, err := d.ReadToken(); err != nil {
			return nil, damaged("%v", err)
		}
		if d.StackDepth() > maxDepth {
			return nil, damaged("the nesting exceeds the limit of %d", maxDepth)
		}
	}
	return out, nil
}

// Text returns the content of a JSON string, false for any other value.
func Text(v jsontext.Value) (string, bool) {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return "", false
	}
	return s, true
}

// Quote returns a text as a JSON string.
func Quote(s string) jsontext.Value {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string cannot fail
	return bytes.TrimRight(b.Bytes(), "\n")
}

// key is a UUID in its valid form, or the hash of any other key of the pool. canonical distinguishes the two.
type key [16]byte

func keyOf(text string) (k key, canonical bool) {
	if id, ok := parseID(text); ok {
		return key(id), true
	}
	sum := sha256.Sum256([]byte(text))
	return key(sum[:16]), false
}

// KeyOf returns the identity of a key of the pool.
func KeyOf(text string) [16]byte {
	k, _ := keyOf(text)
	return k
}

// parseID reads a UUID in its only valid form: 36 characters, lower case, not all zero.
func parseID(s string) (uuid.UUID, bool) {
	if len(s) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id != uuid.Nil && id.String() == s
}

// ParseID reads an id of a legacy context that is also a valid id in ctxdir.
func ParseID(v jsontext.Value) (uuid.UUID, bool) {
	s, ok := Text(v)
	if !ok {
		return uuid.Nil, false
	}
	return parseID(s)
}

// space is the UUIDv5 namespace for context ids that are not UUIDs. Another one would migrate those contexts twice.
var space = uuid.MustParse("0d2d1f0e-53a6-5f0b-8f0c-6d6f6e6f6c69")
