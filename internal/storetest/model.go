package storetest

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// BodyOf is a message's body, with what is missing in it.
func BodyOf(m *engine.Message) string {
	body, err := m.Body(context.Background())
	if err != nil {
		return string(body) + " " + err.Error()
	}
	return string(body)
}
