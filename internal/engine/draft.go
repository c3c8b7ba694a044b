package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Draft is a message to be stored. Only Body is needed.
type Draft struct {
	ID        uuid.UUID // uuid.Nil: a new UUIDv7
	Role      string    // empty: read from the body, as far as the engine knows its form
	Type      string    // likewise
	CreatedAt time.Time // likewise
	OriginID  string    // the id that the message has elsewhere
	// CopyOf and Repeats name messages of the context, which an erase also erases: see [message.Envelope].
	CopyOf, Repeats []uuid.UUID
	Source          json.RawMessage
	// References are an array of references to lines of files, which the engine keeps as it is.
	References json.RawMessage
	Body       json.RawMessage // the framework's object; kept byte for byte but for insignificant white space

	// Attachments are payloads that the engine reads from elsewhere: base64 of each stands in the body.
	Attachments []Attachment

	// Envelope is the message as another store has it: see [Store.Complete]. It stands for all fields above; an
	// ID must be that of the message.
	Envelope []byte
	// Payload returns a payload to which the envelope refers, and its size in bytes. It is called for those that the store
	// lacks. If it fails with [fs.ErrNotExist], the message is stored without the payload.
	Payload func(sum blob.Sum) (io.ReadCloser, int64, error)
	// Gone says that the other store could not show the message either: only ID counts, and the position stays.
	Gone archive.Gone
}

// maxReferences bounds the references of a draft, in bytes.
const maxReferences = 1 << 20

// MaxAttachmentBytes bounds the payloads of one message, in bytes before base64: a larger body could not be put
// together.
const MaxAttachmentBytes = loader.MaxBody

// Attachment is a payload to be put into a message as base64. It becomes a blob without passing through memory whole. A
// message is refused with [ErrInvalid] before anything is stored if an attachment cannot be placed, and with
// [ErrTooLarge] if its payloads together exceed [MaxAttachmentBytes].
type Attachment struct {
	// At is the RFC 6901 pointer, of at most 1 KiB, to the empty string in Body where the payload belongs. It must lead
	// to one string, and each attachment to a different one.
	At        string
	MediaType string // in UTF-8; empty if unknown
	Prefix    string // text before the base64, in UTF-8, such as "data:image/png;base64,"
	Open      func() (io.ReadCloser, error)
}

func (a *Attachment) check() error {
	switch {
	case a.Open == nil:
		return errors.New("Open is nil")
	case !utf8.ValidString(a.Prefix):
		return errors.New("the prefix is not valid UTF-8")
	case !utf8.ValidString(a.MediaType):
		return errors.New("the media type is not valid UTF-8")
	}
	return nil
}

// AppendResult is the place of a stored message.
type AppendResult struct {
	ID       uuid.UUID
	Position int64
	Existed  bool // it was there before: with equal content, or damaged or lost
}

// BatchResult is the outcome for one message of a batch: the message is durable, or Err says why not.
type BatchResult struct {
	AppendResult
	Err error
}

// PendingMessage is a message before its commit.
type PendingMessage struct {
	Draft
	Stored       []byte    // Body, with references
	Refs         int       // number of references
	PayloadBytes int64     // size of their payloads
	Payloads     []Item    // small ones, for the log
	storedAt     time.Time // when the other store committed it; zero for a message of this one
}

// Count adds to the bytes moved out of the draft. It fails beyond MaxBody, since no body could be read with them.
func (d *PendingMessage) Count(size int64) error {
	if size > loader.MaxBody-d.PayloadBytes {
		return errPayloadsTooLarge
	}
	d.PayloadBytes += size
	return nil
}

// limitedReader fails when a draft's payloads become too large.
type limitedReader struct {
	r io.Reader
	d *PendingMessage
}

func (c *limitedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if full := c.d.Count(int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

var errPayloadsTooLarge = fmt.Errorf("%w: its payloads exceed the limit of %d bytes", ErrTooLarge, int64(loader.MaxBody))

// kept returns the references of a message that had those before: a draft without references keeps them, and an empty
// array removes them.
func (d *PendingMessage) kept(before json.RawMessage) json.RawMessage {
	switch {
	case d.References == nil:
		return before
	case string(d.References) == "[]":
		return nil
	}
	return d.References
}

// isDraftError reports whether an error is about the draft itself: the rest of a batch can then be stored without it.
// After any other error, as of a full disk, the rest is not stored: a retry would change the order of the messages.
func isDraftError(err error) bool {
	ofDraft := []error{ErrInvalid, ErrTooLarge, ErrConflict, ErrDamaged, ErrErased}
	return slices.ContainsFunc(ofDraft, func(of error) bool { return errors.Is(err, of) })
}
