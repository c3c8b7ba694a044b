package ctxdir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Draft is a message to be stored. Only Body is required, or Envelope, or Unavailable and ID.
type Draft struct {
	// ID is a new UUIDv7 when it is uuid.Nil. To give a message the same id whenever it arrives, derive it from the id of
	// its context and the id, or content, that it has elsewhere: uuid.NewSHA1(contextID, []byte(originID)).
	ID        uuid.UUID
	Role      string    // read from the body when it is empty, as far as the engine knows its form
	Type      string    // likewise
	CreatedAt time.Time // likewise
	OriginID  string    // the id that the message has elsewhere
	Source    json.RawMessage
	// References are an array of references to lines of files, at most 1 MiB of JSON, stored beside the body: see
	// package reference. A replacement without references keeps those of the message; an empty array removes them.
	References json.RawMessage
	Body       json.RawMessage // the framework's object; kept byte for byte, except for insignificant white space

	// Attachments are payloads that the engine reads from elsewhere and puts into the body as base64.
	Attachments []Attachment

	// Envelope, in place of all fields above but perhaps ID, is a message as another store has it: see [Message.Envelope]. Everything but its
	// place is kept, even StoredAt, unless that is in the future.
	Envelope json.RawMessage
	// Payload returns a payload to which Envelope refers, by its SHA-256 in hexadecimal digits, and its size in bytes. It is
	// called for payloads that the store lacks. If it fails with [fs.ErrNotExist], the message is stored without the payload.
	Payload func(sha256 string) (io.ReadCloser, int64, error)
	// Unavailable, in place of everything but ID, is why the other store does not show the message: [ErrErased], or any other
	// error. The message is as unavailable here, and keeps its position. A commit can append it, a batch cannot.
	Unavailable error
}

// Attachment is a payload to be put into a message as base64. It becomes a blob without passing through memory whole.
// If an attachment cannot be placed, the append fails with [ErrInvalid] before anything is stored. If the payloads of a
// message exceed 1 GiB, before base64, it fails with [ErrTooLarge].
type Attachment struct {
	// At is the RFC 6901 pointer, of at most 1 KiB, to the empty string in Body where the payload belongs. Two
	// attachments cannot share a string.
	At        string
	MediaType string // in UTF-8; empty when unknown
	Prefix    string // the text before the base64, in UTF-8, such as "data:image/png;base64,"
	Open      func() (io.ReadCloser, error)
}

// NewDraft makes a draft of a Go value: its JSON, as [json.Marshal] makes it, but without escapes of <, > and &. It fails
// with [ErrInvalid] if v has no JSON, or none that is an object.
func NewDraft(v any) (Draft, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if body := bytes.TrimSpace(b.Bytes()); err == nil && !bytes.HasPrefix(body, []byte("{")) {
		err = fmt.Errorf("the JSON of a %T is no object", v)
	}
	if err != nil {
		return Draft{}, &Error{Op: "make a draft", Err: fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	return Draft{Body: bytes.TrimSpace(b.Bytes())}, nil
}

func (d *Draft) engine() engine.Draft {
	e := engine.Draft{
		ID: d.ID, Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, Source: d.Source, Body: d.Body,
		References: d.References,
	}
	for _, a := range d.Attachments {
		e.Attachments = append(e.Attachments, engine.Attachment(a))
	}
	e.Envelope = d.Envelope
	if d.Payload != nil {
		e.Payload = func(sum blob.Sum) (io.ReadCloser, int64, error) { return d.Payload(sum.String()) }
	}
	switch {
	case errors.Is(d.Unavailable, ErrErased):
		e.Gone = archive.Erased
	case d.Unavailable != nil:
		e.Gone = archive.Lost
	}
	return e
}

func engineDrafts(drafts []Draft) []engine.Draft {
	from := make([]engine.Draft, len(drafts))
	for i := range drafts {
		from[i] = drafts[i].engine()
	}
	return from
}

// AppendResult is the result of an append: the id and the position of the message.
type AppendResult struct {
	ID       uuid.UUID
	Position int64
	Existed  bool  // the id existed already, with equal content, or its message was lost
	Err      error // in a batch: why this message is not stored; nil means that it is durable
}

// Append adds a message at the end of the branch. Unless the store was opened with [Options].RelaxedDurability, the message
// is on disk when Append returns: one fdatasync, which concurrent appends share, has covered it.
//
// A retry is safe. If the id exists with an equal body, Append succeeds and returns its position; if it exists with
// another body, Append fails with [ErrConflict]. If that message is damaged or lost, Append stores the body at its
// position. After an error that wraps [ErrDurability], the message may or may not be stored: retry with the same id.
// ctx cancels the wait for the lock, never a commit. Append takes a Position and a Sequence.
func (b *Branch) Append(ctx context.Context, d Draft, opts ...WriteOptions) (AppendResult, error) {
	at, err := b.e.Append(ctx, d.engine(), writeOptions(opts)...)
	return AppendResult{ID: at.ID, Position: at.Position, Existed: at.Existed}, err
}

// AppendBatch adds messages in order, with one commit and one fdatasync. The results say for each message whether it is
// durable. If a message is refused for its content, the others are still stored. An error means that the batch stopped
// early, or before the first message. The stored messages are then the first ones of the batch. AppendBatch takes the options of Append.
func (b *Branch) AppendBatch(ctx context.Context, drafts []Draft, opts ...WriteOptions) ([]AppendResult, error) {
	done, err := b.e.AppendBatch(ctx, engineDrafts(drafts), writeOptions(opts)...)
	results := make([]AppendResult, len(done))
	for i, r := range done {
		results[i] = AppendResult{r.ID, r.Position, r.Existed, r.Err}
	}
	return results, err
}

// Replace gives a message another body, for instance while it streams. Its position stays; the old version goes to the
// trash of the context. Replace fails with [ErrErased] if the message was erased, and with [ErrShared] when another branch
// shows it too, unless Shared is set. It takes a Position and a Sequence too.
func (b *Branch) Replace(ctx context.Context, id uuid.UUID, d Draft, opts ...WriteOptions) error {
	return b.e.Replace(ctx, id, d.engine(), writeOptions(opts)...)
}
