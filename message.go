package ctxdir

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Message is a stored message. Callers share it and must not change it.
type Message struct {
	ID         uuid.UUID
	Position   int64     // the same in every branch that shows the message
	Line       uuid.UUID // the line that owns the message
	Role       string
	Type       string
	CreatedAt  time.Time       // the message's own time; zero if it has none
	StoredAt   time.Time       // when this version was committed
	OriginID   string          // the id that the message had elsewhere, if it is not ID
	Source     json.RawMessage // the origin of the message, from an importer
	References json.RawMessage // to lines of files, an array or nil: package reference reads them
	Stored     json.RawMessage // the framework's object, with references in place of payloads; Body has the payloads

	// Edited reports whether the file was changed by hand after the commit.
	Edited bool
	// Unavailable says why the message cannot be read. ID, Position and Line are still set, as far as they are known. It
	// wraps [ErrDamaged], [ErrErased], [ErrTooLarge] or an error of the file system.
	Unavailable error

	from *loader.Message
}

func message(m *loader.Message) *Message {
	if m == nil {
		return nil
	}
	return &Message{
		ID:          m.ID,
		Position:    m.Position,
		Line:        m.Line,
		Role:        m.Role,
		Type:        m.Type,
		CreatedAt:   m.CreatedAt,
		StoredAt:    m.StoredAt,
		OriginID:    m.OriginID,
		Source:      m.Source,
		References:  m.References,
		Stored:      m.Stored,
		Edited:      m.Edited,
		Unavailable: m.Unavailable,
		from:        m,
	}
}

func messages(from []*loader.Message) []*Message {
	if from == nil {
		return nil
	}
	all := make([]*Message, len(from))
	for i, m := range from {
		all[i] = message(m)
	}
	return all
}

// Envelope returns the message as another store can take it: see [Draft].Envelope. It is the envelope of docs/FORMAT.md, of
// whose place the other store keeps nothing. An unavailable message has none.
func (m *Message) Envelope() json.RawMessage {
	if m.from == nil {
		return nil
	}
	return m.from.Envelope()
}

// Payload is a part of a message that is stored in a blob; [Message].Stored has a reference to it.
type Payload struct {
	Pointer   string // the RFC 6901 pointer to it in the message; empty if longer than 1 KiB
	SHA256    string // of the payload, in hexadecimal digits
	Size      int64  // in bytes
	Binary    bool   // the body holds the payload as base64
	MediaType string // of a binary payload, if it is known
	Prefix    string // the text before the base64, such as data:image/png;base64,
	Problem   string // why the reference cannot be resolved; empty for a valid one

	ref blob.Ref
}

func payload(r blob.Ref) Payload {
	return Payload{r.Path, r.Sum.String(), r.Size, r.Encoding != "", r.MediaType, r.Prefix, r.Problem, r}
}

// Payloads lists the payloads of the message in order. It opens no blob.
func (m *Message) Payloads() ([]Payload, error) {
	from := m.from
	if from == nil { // a message that the caller made
		from = &loader.Message{Stored: m.Stored}
	}
	refs, err := from.Payloads()
	all := make([]Payload, 0, len(refs))
	for _, r := range refs {
		all = append(all, payload(r))
	}
	return all, err
}

// Open returns a payload of the message as a stream, and its size in bytes. The reader verifies the content at its end.
func (m *Message) Open(p Payload) (io.ReadCloser, int64, error) { return m.from.Open(p.ref) }

// Body returns the framework's object, byte for byte, with every payload in its place. If a payload cannot be read, the
// body has the reference instead, and the error joins an [*Error] for each such payload, with its pointer as Path. An
// unavailable message has no body; the error says why.
//
// encoding/json escapes <, >, & and two line separators in a [json.RawMessage] that is a part of another value. To
// write a body into other JSON byte for byte, use a [json.Encoder] with SetEscapeHTML(false).
func (m *Message) Body(ctx context.Context) (json.RawMessage, error) {
	body, err := m.from.Body(ctx)
	return body, m.wrap(err)
}

// WriteBody streams the object that Body returns to w, so it can write a body above the limit of [Options].MemoryLimit. It
// fails as Body does; the references of payloads that cannot be read are written in their places.
func (m *Message) WriteBody(ctx context.Context, w io.Writer) error {
	return m.wrap(m.from.WriteBody(ctx, w))
}

// Texts is Body for display: references to binary payloads stay, with size and media type. Texts verifies that the
// blobs of these payloads exist, but does not read them. Do not store the result: a framework may have an object that
// looks like a reference.
func (m *Message) Texts(ctx context.Context) (json.RawMessage, error) {
	texts, err := m.from.Texts(ctx)
	return texts, m.wrap(err)
}

// wrap returns an [*Error] for each payload that cannot be read.
func (m *Message) wrap(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, m.wrap(e))
		}
		return errors.Join(all...)
	}
	var of *blob.UnavailableError
	if errors.As(err, &of) {
		return &Error{Op: "read the payload", Path: of.Ref.Path, ID: m.ID, Err: of}
	}
	return err
}

// ResolveAll returns the bodies of messages, as [Message.Body] does for one. It reads their payloads in parallel.
func ResolveAll(ctx context.Context, messages []*Message) ([]json.RawMessage, error) {
	from := make([]*loader.Message, len(messages))
	for i, m := range messages {
		from[i] = m.from
	}
	return loader.Bodies(ctx, from)
}
