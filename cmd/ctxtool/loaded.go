package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// loadedMessage is a message with its payloads in place.
type loadedMessage struct {
	*ctxdir.Message
	Body    json.RawMessage // nil if it is too large for memory; writeTo writes it
	missing error           // why a payload is not in place
}

const (
	// maxParsedBody bounds the body of a message that a verb parses, in bytes: parsing needs several times as much memory.
	maxParsedBody = 64 << 20
	// maxBufferedBody bounds a body that is read into memory before it is written verbatim.
	maxBufferedBody = 1 << 20
)

// loadMessage reads the payloads of a message: all, or only the texts if it is for people. An unavailable payload
// leaves its reference in the body.
func loadMessage(ctx context.Context, m *ctxdir.Message, forPeople bool) (*loadedMessage, error) {
	if m.Unavailable != nil || !forPeople && fullSize(m) > maxBufferedBody {
		return &loadedMessage{Message: m}, nil
	}
	read := m.Body
	if forPeople {
		read = m.Texts
	}
	body, err := read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &loadedMessage{m, body, payloadError(err)}, nil
}

// writeTo writes the body.
func (s *loadedMessage) writeTo(ctx context.Context, w io.Writer) error {
	if s.Body != nil {
		_, err := w.Write(s.Body)
		return err
	}
	err := s.WriteBody(ctx, w)
	if ctx.Err() == nil && isPayload(err) {
		s.missing, err = payloadError(err), nil
	}
	return err
}

// isPayload reports whether an error is about a payload that cannot be read.
func isPayload(err error) bool { return libraryError(err).Op == "read the payload" }

// payloadError is an error of reading a body, without the message.
func payloadError(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, payloadError(e))
		}
		return errors.Join(all...)
	}
	if isPayload(err) {
		return cause(err)
	}
	return err
}

// inMemory returns the message with its body in memory, for parsing.
func (s *loadedMessage) inMemory(ctx context.Context) (*loadedMessage, error) {
	if s.Body != nil || s.Unavailable != nil {
		return s, nil
	}
	body, missing := s.Message.Body(ctx)
	s.Body, s.missing = body, payloadError(missing)
	return s, ctx.Err()
}

// incompleteCount counts unavailable and incomplete messages. Erased messages do not count: they were removed on
// purpose.
type incompleteCount struct {
	messages int
	large    bool  // a message is too large to parse
	refused  error // the system refused to read a message
}

func (l *incompleteCount) add(m *loadedMessage) bool {
	if m.Unavailable == nil && m.missing == nil || isErased(m) {
		return false
	}
	l.messages++
	if err := cmp.Or(m.Unavailable, m.missing); refused(err) {
		l.refused = err
	}
	l.large = l.large || errors.Is(m.missing, ctxdir.ErrTooLarge)
	return true
}

func isErased(m *loadedMessage) bool { return errors.Is(m.Unavailable, ctxdir.ErrErased) }

// err is nil if all messages are complete.
func (l *incompleteCount) err(context uuid.UUID) error {
	if l.messages == 0 {
		return nil
	}
	advice := fmt.Sprintf("run %q", strings.TrimSpace("ctxtool repair "+idText(context)))
	switch {
	case l.refused != nil:
		advice = hint(l.refused)
	case l.large:
		advice = fmt.Sprintf(`run "ctxtool --json show %s" for messages of any size, and --save-attachments DIR for their files`, context)
	}
	return problems(advice, "failed to read %s completely", count(l.messages, "message"))
}

// fullSize is the size of a message with its payloads, in bytes, as far as the references know.
func fullSize(m *ctxdir.Message) int {
	size := len(m.Stored)
	refs, err := m.Payloads()
	if err != nil {
		return size
	}
	for _, ref := range refs {
		size += int(max(min(ref.Size, int64(math.MaxInt-size)), 0))
	}
	return size
}
