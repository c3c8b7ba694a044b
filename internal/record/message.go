package record

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/ctxdir/ctxdir"
)

// Message is the head of a message; [WriteMessage] adds the message.
type Message struct {
	Record      string          `json:"record,omitempty"`
	Branch      string          `json:"branch"`
	Position    int64           `json:"position"`
	ID          string          `json:"id"`
	Role        string          `json:"role"`
	Type        string          `json:"type"`
	CreatedAt   time.Time       `json:"created_at,omitzero"`
	Edited      bool            `json:"edited,omitempty"`
	Unavailable string          `json:"unavailable,omitempty"`
	Bytes       *int64          `json:"bytes,omitempty"` // of the message, if the message itself is left out
	References  json.RawMessage `json:"references,omitempty"`
}

// OfMessage describes a message on a branch, without the message.
func OfMessage(m *ctxdir.Message, branch string) Message {
	return Message{
		"message", branch, m.Position, m.ID.String(), m.Role, m.Type, m.CreatedAt, m.Edited, Problem(m.Unavailable), nil, m.References,
	}
}

// FullSize is the size of a message with its payloads, in bytes, as far as the references know.
func FullSize(m *ctxdir.Message) int64 {
	size := int64(len(m.Stored))
	refs, err := m.Payloads()
	if err != nil {
		return size
	}
	for _, ref := range refs {
		size += max(min(ref.Size, 1<<60-size), 0)
	}
	return size
}

// Content says how much of a message a record has.
type Content int

// The forms of messages.
const (
	Full  Content = iota // with every payload in its place
	Texts                // with references to binary payloads, as [ctxdir.Message.Texts]
	None                 // only its size
)

// WriteMessage writes the record of a message as a line of JSON: head with the message as its last member, verbatim. It
// reads large messages piece by piece. A payload that cannot be read leaves its reference in the message, and the record
// says "unavailable".
func WriteMessage(ctx context.Context, w io.Writer, m *ctxdir.Message, head any, content Content) error {
	if m.Unavailable != nil {
		return Write(w, head, "message", func(w io.Writer) error { _, err := io.WriteString(w, "null"); return err })
	}
	var missing error
	b := Encode(head)
	if _, err := w.Write(append(b[:len(b)-1], `,"message":`...)); err != nil {
		return err
	}
	if content == Texts {
		body, err := m.Texts(ctx)
		if body == nil && err != nil {
			return err
		}
		missing = err
		if _, err := w.Write(body); err != nil {
			return err
		}
	} else {
		out := &sink{w: w}
		missing = m.WriteBody(ctx, out)
		if out.err != nil {
			return out.err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end := "}\n"
	if missing != nil {
		if !IsPayload(missing) {
			return missing
		}
		end = `,"unavailable":` + string(Encode(Problem(missing))) + end
	}
	_, err := io.WriteString(w, end)
	return err
}

// IsPayload reports whether an error is about a payload that cannot be read.
func IsPayload(err error) bool {
	var e *ctxdir.Error
	return errors.As(err, &e) && e.Op == "read the payload"
}

// sink keeps the first error of a writer, so that it is not taken for one of reading.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}
