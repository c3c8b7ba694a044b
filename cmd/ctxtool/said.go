package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// said is a message with its payloads back in their places.
type said struct {
	*ctxdir.Message
	Body json.RawMessage // nil where it is too large to be held: writeTo writes it
	// missing is why some payload of the body is not in its place.
	missing error
}

const (
	// transformed bounds the body of a message that a verb takes apart, in bytes: that takes several times as much memory.
	transformed = 64 << 20
	// streamed is from how many bytes on a body that is written as it is goes to the output without being held.
	streamed = 1 << 20
)

// say reads a message's payloads: all, or for people the texts. One that is unavailable leaves its reference in the body.
func say(ctx context.Context, m *ctxdir.Message, forPeople bool) (*said, error) {
	if m.Unavailable != nil || !forPeople && whole(m) > streamed {
		return &said{Message: m}, nil
	}
	read := m.Body
	if forPeople {
		read = m.Texts
	}
	body, err := read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &said{m, body, payloadError(err)}, nil
}

// writeTo writes the body.
func (s *said) writeTo(ctx context.Context, w io.Writer) error {
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
func isPayload(err error) bool { return placeOf(err).Op == "read the payload" }

// payloadError is an error of reading a body without the message, for where that is known.
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

// held returns the message with its body in memory, for what takes it apart.
func (s *said) held(ctx context.Context) (*said, error) {
	if s.Body != nil || s.Unavailable != nil {
		return s, nil
	}
	body, missing := s.Message.Body(ctx)
	s.Body, s.missing = body, payloadError(missing)
	return s, ctx.Err()
}

// lacking counts messages that cannot be had, or not whole. Those that were erased are none of them: that is how it was meant.
type lacking struct {
	messages int
	large    bool  // some only because they are too large to be taken apart
	refused  error // by the system, of one
}

func (l *lacking) add(m *said) bool {
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

func isErased(m *said) bool { return errors.Is(m.Unavailable, ctxdir.ErrErased) }

// err is nil where nothing lacks.
func (l *lacking) err(context uuid.UUID, one, many string) error {
	if l.messages == 0 {
		return nil
	}
	hintOf := hint
	hint := fmt.Sprintf(`"ctxtool repair %s" brings back what it can`, context)
	switch {
	case l.refused != nil:
		hint = hintOf(l.refused)
	case l.large:
		hint = fmt.Sprintf(`"ctxtool --json show %s" has messages of any size, --save-attachments DIR writes the files in them`, context)
	}
	return &problemsError{plural(l.messages, one, many), hint}
}

// whole is how long a message is with its payloads, in bytes, as far as can be told without reading them.
func whole(m *ctxdir.Message) int {
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
