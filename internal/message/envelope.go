// Package message is the codec of message files.
//
// A message file is an envelope: the fields that the store needs (id, line, position, previous id, …) beside "message",
// the framework's own object. That object keeps every byte except insignificant white space: key order, duplicate keys,
// escapes and number literals stay.
//
// The package interprets the framework's object only to read a role, a type and a time ([Describe]), and never changes
// a byte of it.
package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
)

// Version is the format mark that begins every envelope.
const (
	Version = kind + "1"
	kind    = "message/"
)

// ErrMalformed is wrapped by errors about bytes that are not an envelope or a message.
var ErrMalformed = errors.New("malformed message")

// ErrVersion is wrapped by errors about an envelope of another format version.
var ErrVersion = errors.New("unsupported message format")

// Envelope is one stored message.
type Envelope struct {
	ID       uuid.UUID // unique within its line
	Line     uuid.UUID // the owning line
	Position int64     // 0-based, from the beginning of the line's whole history
	Prev     uuid.UUID // the previous message, uuid.Nil for the first
	StoredAt time.Time // when this version was committed; also the file's modification time
	Payloads int       // references to blobs in Body
	Branch   string    // the branch's name at the time, for users and for disaster recovery

	Role      string
	Type      string
	CreatedAt time.Time       // the message's own time, or zero
	OriginID  string          // the message's id in its origin
	CopyOf    []uuid.UUID     // messages that have the text of this one, as a whole
	Repeats   []uuid.UUID     // messages whose text this one has too, beside more
	Source    json.RawMessage // how the message entered the store; an object or nil

	References json.RawMessage // to lines of files; an array or nil
	Body       json.RawMessage // the framework's object
}

// Sum returns the checksum of an envelope's bytes: XXH64, without the newline that ends a file.
func Sum(b []byte) uint64 { return xxhash.Sum64(b) }

// AppendTo appends the envelope's canonical form, one line of JSON without the newline.
func (e *Envelope) AppendTo(b []byte) []byte {
	b = append(b, `{"ctxdir":"`+Version+`","id":"`...)
	b = appendUUID(b, e.ID)
	b = append(b, `","line":"`...)
	b = appendUUID(b, e.Line)
	b = append(b, `","position":`...)
	b = strconv.AppendInt(b, e.Position, 10)
	b = append(b, `,"prev":`...)
	if e.Prev == uuid.Nil {
		b = append(b, `null`...)
	} else {
		b = append(b, '"')
		b = appendUUID(b, e.Prev)
		b = append(b, '"')
	}
	b = append(b, `,"stored_at":"`...)
	b = e.StoredAt.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if e.Payloads > 0 {
		b = append(b, `,"payloads":`...)
		b = strconv.AppendInt(b, int64(e.Payloads), 10)
	}
	b = appendMember(b, "branch", e.Branch)
	b = appendMember(b, "role", e.Role)
	b = appendMember(b, "type", e.Type)
	if y := e.CreatedAt.UTC().Year(); !e.CreatedAt.IsZero() && 0 <= y && y <= 9999 { // others would be unreadable
		b = append(b, `,"created_at":"`...)
		b = e.CreatedAt.UTC().AppendFormat(b, time.RFC3339Nano)
		b = append(b, '"')
	}
	b = appendMember(b, "origin_id", e.OriginID)
	b = appendIDs(b, "copy_of", e.CopyOf)
	b = appendIDs(b, "repeats", e.Repeats)
	if len(e.Source) > 0 {
		b = append(b, `,"source":`...)
		b = append(b, e.Source...)
	}
	if len(e.References) > 0 {
		b = append(b, `,"references":`...)
		b = append(b, e.References...)
	}
	b = append(b, `,"message":`...)
	b = append(b, e.Body...)
	return append(b, '}')
}

func appendUUID(b []byte, id uuid.UUID) []byte {
	var text [36]byte
	t, _ := id.MarshalText()
	copy(text[:], t)
	return append(b, text[:]...)
}

func appendIDs(b []byte, key string, ids []uuid.UUID) []byte {
	if len(ids) == 0 {
		return b
	}
	b = append(append(append(b, ',', '"'), key...), `":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendUUID(append(b, '"'), id), '"')
	}
	return append(b, ']')
}

func appendMember(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	return appendString(b, value)
}

func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			q, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...)
			}
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// DerivedID returns a stable id for a second item beside id: UUIDv5 of name in the space of id.
func DerivedID(id uuid.UUID, name string) uuid.UUID { return uuid.NewSHA1(id, []byte(name)) }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}
