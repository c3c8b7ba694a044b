package main

import (
	"context"
	"encoding/json"

	"github.com/ctxdir/ctxdir"
)

// said is a message with its payloads back in their places.
type said struct {
	*ctxdir.Message
	Body json.RawMessage
	// missing is why some payload of the body is not in its place.
	missing error
}

// say reads a message's payloads. One that cannot be had leaves its reference in the body.
func say(ctx context.Context, m *ctxdir.Message) (*said, error) {
	if m.Unavailable != nil {
		return &said{Message: m}, nil
	}
	body, err := m.Body(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &said{m, body, err}, nil
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
