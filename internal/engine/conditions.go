package engine

import (
	"fmt"
	"slices"
)

// WriteOption is a condition of one write. A write refuses options that it does not use, with [ErrInvalid].
type WriteOption struct {
	name string
	set  func(*conditions)
}

// conditions are what a write requires of the state on which it happens.
type conditions struct {
	position *int64  // nil for any
	exact    bool    // messages that are at this position already do not count as a retry
	sequence *uint64 // nil for any
	shared   bool    // other branches may show the message too
}

// AtPosition makes a write fail with [ErrPosition] unless the first message that it appends gets this position, or the
// message that it replaces has it. A retry succeeds: the first message has an id, and is there already.
func AtPosition(position int64) WriteOption {
	return WriteOption{"position", func(o *conditions) { o.position = &position }}
}

// ExactlyAt is AtPosition for a writer that never retries: another writer stored existing messages.
func ExactlyAt(position int64) WriteOption {
	return WriteOption{"position", func(o *conditions) { o.position, o.exact = &position, true }}
}

// AtSequence makes a write fail with [ErrPosition] unless the newest commit before it has this number.
func AtSequence(seq uint64) WriteOption {
	return WriteOption{"sequence", func(o *conditions) { o.sequence = &seq }}
}

// Shared lets a replacement change a message that other branches show too.
func Shared() WriteOption { return WriteOption{"shared", func(o *conditions) { o.shared = true }} }

func conditionsOf(opts []WriteOption, used ...string) (o conditions, err error) {
	for _, x := range opts {
		if !slices.Contains(used, x.name) {
			return o, fmt.Errorf("%w: this call does not accept the option %q", ErrInvalid, x.name)
		}
		x.set(&o)
	}
	return o, nil
}
