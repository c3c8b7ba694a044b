package outline

import (
	"time"

	"github.com/google/uuid"
)

// Turn is a prompt of a person and everything up to the next one.
type Turn struct {
	Number    int64     // from 1; 0 for what comes before the first prompt
	From, To  int64     // positions, without To
	ID        uuid.UUID // of the message with the prompt; of the first message in turn 0
	At, Until time.Time // of the first and the last message with a mark
	Prompt    string    // the beginning of the first prompt, in one line
	Answer    string    // the beginning of the last reply that has a text

	Prompts        int64
	Calls          Calls
	Failed         int64 // results that report an error
	Added, Removed int64 // lines, by calls that change files: as they were called
	Breaks         int64 // compactions
}

// NewTurn returns a turn of a branch without its notes.
func NewTurn(b *Branch, number int64) Turn {
	from, to := b.Turn(number)
	return Turn{Number: number, From: from, To: to}
}

// Add adds the next note of the turn.
func (t *Turn) Add(n *Note) {
	if t.ID == uuid.Nil {
		t.ID = n.ID
	}
	if n.Marks != 0 && !n.At.IsZero() { // the time of bookkeeping may be that of its import
		if t.At.IsZero() {
			t.At = n.At
		}
		t.Until = n.At
	}
	if n.Marks&Prompt != 0 {
		if t.Prompts++; t.Prompts == 1 {
			t.ID, t.Prompt = n.ID, n.Text
		}
	}
	if n.Marks&Reply != 0 && n.Text != "" {
		t.Answer = n.Text
	}
	for i, calls := range n.Calls {
		t.Calls[i] += calls
	}
	t.Failed, t.Added, t.Removed = t.Failed+n.Failed, t.Added+n.Added, t.Removed+n.Removed
	if n.Marks&Break != 0 {
		t.Breaks++
	}
}
