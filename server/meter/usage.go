// Package meter keeps what a server keeps of requests in local mode: for each message its role, its time and its number of
// tokens. There is no id in it, neither of a session nor of a request, and no text.
package meter

import (
	"context"
	"maps"
	"slices"
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

// Day is what a user asked on one day, in UTC.
type Day struct {
	Date     string `json:"date"` // such as 2027-03-14
	Requests int64  `json:"requests"`
	Prompt   int64  `json:"prompt_tokens"`
	Answers  int64  `json:"completion_tokens"`
}

// Days adds rows up by day, in ascending order.
func Days(rows []Row) []Day {
	byDate := map[string]*Day{}
	for _, r := range rows {
		date := r.At.UTC().Format(time.DateOnly)
		if byDate[date] == nil {
			byDate[date] = &Day{Date: date}
		}
		if d := byDate[date]; r.Role == "user" {
			d.Requests, d.Prompt = d.Requests+1, d.Prompt+r.Tokens
		} else {
			d.Answers += r.Tokens
		}
	}
	var all []Day
	for _, date := range slices.Sorted(maps.Keys(byDate)) {
		all = append(all, *byDate[date])
	}
	return all
}
