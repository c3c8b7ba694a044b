package record

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/ctxdir/ctxdir"
)

// Message is the head of a message; [Loaded.Write] adds the message.
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
	Bytes       *int64          `json:"bytes,omitempty"` // replaces the message
	References  json.RawMessage `json:"references,omitempty"`
}

// FullSize is the size of a message with its payloads, in bytes, as far as the references know.
func FullSize(m *ctxdir.Message) int64 {
	size := int64(len(m.Stored))
	refs, err := m.Payloads()
	if err != nil {
		return size
	}
	for _, ref := range refs {
		size += max(min(ref.Size, math.MaxInt64-size), 0)
	}
	return size
}

// Content says how much of a message is loaded.
type Content int

// The forms of messages.
const (
	Full  Content = iota // with every payload in its place
	Texts                // with references to binary payloads, as [ctxdir.Message.Texts]
	None                 // only its size
)

// maxBuffered bounds a full body that is read into memory before it is written, in bytes.
const maxBuffered = 1 << 20

// Loaded is a message with its payloads in place.
type Loaded struct {
	*ctxdir.Message
	Body    json.RawMessage // nil if it is too large for memory; WriteTo writes it
	Missing error           // why a payload is not in place

	size *int64 // replaces the body
}

// Load reads the payloads of a message. An unavailable payload leaves its reference in the body, and Missing says why.
// Load fails only if ctx ends.
func Load(ctx context.Context, m *ctxdir.Message, content Content) (*Loaded, error) {
	if m.Unavailable != nil {
		return &Loaded{Message: m}, nil
	}
	if content == None {
		size := FullSize(m)
		return &Loaded{Message: m, size: &size}, nil
	}
	if content == Full && FullSize(m) > maxBuffered {
		return &Loaded{Message: m}, nil
	}
	read := m.Body
	if content == Texts {
		read = m.Texts
	}
	body, err := read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &Loaded{Message: m, Body: body, Missing: payloadError(err)}, nil
}

// InMemory returns the message with its body in memory, for parsing.
func (l *Loaded) InMemory(ctx context.Context) (*Loaded, error) {
	if l.Body != nil || l.Unavailable != nil {
		return l, nil
	}
	body, missing := l.Message.Body(ctx)
	l.Body, l.Missing = body, payloadError(missing)
	return l, ctx.Err()
}

// Head is the record of the message on a branch, without the message. If only the size was loaded, it has the size.
func (l *Loaded) Head(branch string) Message {
	m := l.Message
	return Message{
		"message", branch, m.Position, m.ID.String(), m.Role, m.Type, m.CreatedAt, m.Edited, Problem(cmp.Or(m.Unavailable, l.Missing)),
		l.size, m.References,
	}
}

// WriteBody writes the body. It reads a large one piece by piece.
func (l *Loaded) WriteBody(ctx context.Context, w io.Writer) error {
	if l.Body != nil {
		_, err := w.Write(l.Body)
		return err
	}
	out := &sink{w: w}
	err := l.Message.WriteBody(ctx, out)
	switch {
	case out.err != nil:
		return out.err
	case ctx.Err() == nil && isPayload(err):
		l.Missing, err = payloadError(err), nil
	}
	return err
}

// Write writes the record of the message as a line of JSON: head, which has the members of [Loaded.Head], with the
// message as its last member, verbatim. If a payload of a large message cannot be read, "unavailable" follows.
func (l *Loaded) Write(ctx context.Context, w io.Writer, head any) error {
	switch {
	case l.Unavailable != nil:
		return writeWith(w, head, "message", []byte("null"))
	case l.size != nil:
		_, err := w.Write(append(Encode(head), '\n'))
		return err
	case l.Body != nil:
		return writeWith(w, head, "message", l.Body)
	case l.Missing != nil:
		return writeWith(w, head, "message", []byte("null"))
	}
	b := Encode(head)
	if _, err := w.Write(append(b[:len(b)-1], `,"message":`...)); err != nil {
		return err
	}
	if err := l.WriteBody(ctx, w); err != nil {
		return err
	}
	end := "}\n"
	if l.Missing != nil { // discovered after the record began
		end = `,"unavailable":` + string(Encode(Problem(l.Missing))) + end
	}
	_, err := io.WriteString(w, end)
	return err
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
