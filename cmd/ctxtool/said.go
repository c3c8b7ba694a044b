package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// said is a message with its payloads back in their places.
type said struct {
	*ctxdir.Message
	Body json.RawMessage
	// missing is why some payload of the body is not in its place.
	missing error
}

// say reads a message's payloads: all, or for people the texts. One that cannot be had leaves its reference in the body.
func say(ctx context.Context, m *ctxdir.Message, forPeople bool) (*said, error) {
	if m.Unavailable != nil {
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
	return &said{m, body, err}, nil
}

// lacking counts messages that cannot be had, or not whole. Those that were erased are none of them: that is how it was meant.
type lacking struct {
	messages int
	large    bool // some only because they are too large for one piece
}

func (l *lacking) add(m *said) bool {
	if m.Unavailable == nil && m.missing == nil || isErased(m) {
		return false
	}
	l.messages++
	l.large = l.large || errors.Is(m.missing, ctxdir.ErrTooLarge)
	return true
}

func isErased(m *said) bool { return errors.Is(m.Unavailable, ctxdir.ErrErased) }

// err is nil where nothing lacks.
func (l *lacking) err(context uuid.UUID, one, many string) error {
	if l.messages == 0 {
		return nil
	}
	hint := fmt.Sprintf(`"ctxtool repair %s" brings back what it can`, context)
	if l.large {
		hint = fmt.Sprintf(`"ctxtool show %s --save-attachments DIR" writes what is too large for a message to files`, context)
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
		size += int(ref.Size)
	}
	return size
}
