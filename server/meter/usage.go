// Package meter keeps what a server keeps of requests in local mode: for each message its role, its time and its number of
// tokens. There is no id in it, neither of a session nor of a request, and no text.
package meter

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Row is what is kept of a message.
type Row struct {
	ID     uuid.UUID `json:"id"` // random: a repeated write adds nothing
	Role   string    `json:"role"`
	At     time.Time `json:"at"`
	Tokens int64     `json:"tokens"`
}

// New returns the rows of a request and its answer. A time is kept in seconds.
func New(at time.Time, prompt, completion int64) []Row {
	at = at.UTC().Truncate(time.Second)
	return []Row{{uuid.New(), "user", at, prompt}, {uuid.New(), "assistant", at, completion}}
}

// Log keeps rows of users.
type Log interface {
	// Add adds rows of a user. They are durable when it returns.
	Add(ctx context.Context, user uuid.UUID, rows []Row) error
	// List returns the rows of a user in the order in which they were added.
	List(ctx context.Context, user uuid.UUID) ([]Row, error)
}
