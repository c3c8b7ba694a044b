// Package index records the order of a context's messages: the journal that commits them, the rows and counts folded
// from it, and the rebuild of both. Other systems call a fold a checkpoint.
//
// An entry describes one message. The entries of a line have contiguous positions. Commits since the last fold are only
// in journals. index.json and the row files can be rebuilt from the rest, and the package trusts journals and message
// files over them. Only rows record that a message was erased or is lost.
//
// The package must never acknowledge a record that no sync covered, retry a failed sync on the same file, or cut off a
// whole record.
package index

import (
	"bytes"
	"errors"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Errors that callers distinguish.
var (
	// ErrDurability reports a failed sync. Whether the records are on disk is unknown, and they are not acknowledged.
	ErrDurability = errors.New("not made durable")
	// ErrDamaged reports stored data that is unavailable in the form in which it was committed.
	ErrDamaged = errors.New("damaged")
	// ErrErased reports a message that was erased on purpose.
	ErrErased = errors.New(Erased)
	// ErrTooLarge reports a message above the size limit.
	ErrTooLarge = errors.New("message is too large")
)

// Entry describes one message in the index.
type Entry struct {
	Position int64
	ID       uuid.UUID // uuid.Nil for a lost message of unknown id
	File     uuid.UUID // the file's name, if it is not ID
	Size     int64     // of the envelope, in bytes
	Sum      uint64    // of the envelope
	At       int64     // stored_at, nanoseconds since 1970
	Lost     string    // why no copy of the message is known; empty for a good one
	Payloads int       // references to blobs in the message, unless it was edited by hand
	Pack     uuid.UUID // the pack that holds the message; uuid.Nil if it has a file

	place archive.Place // in that pack
	seq   uint64        // of the record that committed it; 0 when it was folded long ago
	gen   uint64        // generation of the journal that holds it, 0 for none
	off   int64         // of the record in that journal
}

// FileID returns the name of the message's file, without the ending.
func (e *Entry) FileID() uuid.UUID {
	if e.File != uuid.Nil {
		return e.File
	}
	return e.ID
}

// isLost reports whether an entry is marked lost and not erased.
func (e *Entry) isLost() bool { return e.Lost != "" && e.Lost != Erased }

// end returns where the record ends in its journal, or slightly more: the head may have no mark.
func (e *Entry) end() int64 { return e.off + int64(headSize) + e.Size + tailSize }

// StoredAt returns the time of the commit.
func (e *Entry) StoredAt() time.Time { return time.Unix(0, e.At) }

// Now returns the time for a commit, in whole microseconds, which every system can store as a file's time.
func Now() time.Time { return storable(time.Now()) }

// The range of times that a message can have, in nanoseconds since 1970. A year remains for versions after latest.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)
)

// storable returns the time of a message that is stored at t: t, or the nearest time in range if the clock is wrong.
func storable(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Microsecond)
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t
}

// Next returns the time for a new version's commit: later than the previous one, since file times distinguish the two.
func (e *Entry) Next() time.Time {
	if now := Now(); now.After(e.StoredAt()) {
		return now
	}
	return e.StoredAt().Add(time.Microsecond)
}

func entryOf(a *message.Address, h head) Entry {
	return Entry{Position: a.Position, ID: a.ID, File: a.File, Size: h.len, Sum: h.sum, At: a.StoredAt.UnixNano(), Payloads: a.Payloads}
}

// Counts holds the counts of a line.
type Counts struct {
	Line  uuid.UUID `json:"line"`
	Base  int64     `json:"base"`  // messages that it inherits
	Count int64     `json:"count"` // its own messages
	Bytes int64     `json:"bytes"` // of their envelopes
	Last  uuid.UUID `json:"last"`  // the id of the newest
	// Greatest bounds the ids that the line ever had. If it is zero, and the line has messages, no bound is known.
	Greatest uuid.UUID `json:"greatest,omitzero"`
	// Derived counts the messages whose files have derived names. If it is 0, readers do not look for those.
	Derived int64 `json:"derived,omitempty"`
	// Referring counts all messages, and versions of them, that ever referred to blobs. If it is 0, readers do not
	// look for references.
	Referring int64 `json:"referring,omitempty"`
	// Lost is an upper bound for the messages whose rows are marked lost. If it is 0, readers do not search the rows
	// for an id.
	Lost int64 `json:"lost,omitempty"`
}

// sane reports whether counts read from a file are possible.
func (c Counts) sane() bool {
	return c.Base >= 0 && c.Count >= 0 && c.Bytes >= 0 && c.Base <= maxSeq && c.Count <= maxSeq
}

// End returns the position after the newest message.
func (c Counts) End() int64 { return c.Base + c.Count }

// add counts the next message.
func (c *Counts) add(e *Entry) {
	c.bound(e.ID)
	c.Count++
	c.Bytes += e.Size
	c.Last = e.ID
	if e.File != uuid.Nil && e.File != e.ID {
		c.Derived++
	}
	if e.Payloads > 0 {
		c.Referring++
	}
	if e.isLost() {
		c.Lost++
	}
}

// bound takes an id into account that the line is about to get.
func (c *Counts) bound(id uuid.UUID) {
	if (c.Count == 0 || c.Greatest != uuid.Nil) && bytes.Compare(id[:], c.Greatest[:]) > 0 {
		c.Greatest = id
	}
}

// isAbove reports whether an id is greater than every id that the line ever had.
func (c *Counts) isAbove(id uuid.UUID) bool {
	return (c.Count == 0 || c.Greatest != uuid.Nil) && bytes.Compare(id[:], c.Greatest[:]) > 0
}
