// Package index keeps the order of a context's messages: the journal that commits them, the rows and
// counts that are folded from it, and how both are rebuilt.
//
// An entry is one message's row. A line's entries have contiguous positions. What is committed since the
// last fold stands in journals; index.json and the row files can be rebuilt from the rest, and nothing here believes them
// against the journals and the message files. One thing stands in rows only: that a message was erased or is lost.
//
// The package must never acknowledge what a sync has not covered, retry a failed sync on the same file,
// or cut a record that is whole.
package index

import (
	"errors"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Errors that callers tell apart.
var (
	// ErrDurability is wrapped when a sync failed: whether the records are on disk is unknown, and they
	// are not acknowledged.
	ErrDurability = errors.New("not made durable")
	// ErrDamaged is wrapped when a stored message cannot be had in the form in which it was committed.
	ErrDamaged = errors.New("damaged")
	// ErrErased is wrapped when a message was erased on purpose.
	ErrErased = errors.New(Erased)
	// ErrTooLarge is wrapped when a message is above the limit.
	ErrTooLarge = errors.New("message is too large")
)

// Entry is what the index knows of one message.
type Entry struct {
	Position int64
	ID       uuid.UUID // uuid.Nil for a lost message whose id nobody remembers
	File     uuid.UUID // the file's name, where it is not ID
	Size     int64     // of the envelope, in bytes
	Sum      uint64    // of the envelope
	At       int64     // stored_at, nanoseconds since 1970
	Lost     string    // why no copy of the message is known; empty for a good one
	Payloads int       // references to blobs in the message, as far as it was not edited by hand
	Pack     uuid.UUID // the pack that it is archived in; uuid.Nil for one that has a file

	place archive.Place // in that pack
	seq   uint64        // of the record that committed it; 0 when it was folded long ago
	gen   uint64        // the journal that holds it, 0 for none
	off   int64         // of the record in that journal
}

// FileID is the name of the message's file, without the ending.
func (e *Entry) FileID() uuid.UUID {
	if e.File != uuid.Nil {
		return e.File
	}
	return e.ID
}

// unfound reports whether an entry is marked lost, and was not erased.
func (e *Entry) unfound() bool { return e.Lost != "" && e.Lost != Erased }

// end is where the record ends in its journal, or a little behind that: the head may have no mark.
func (e *Entry) end() int64 { return e.off + int64(headSize) + e.Size + tailSize }

// StoredAt is the time of the commit, and the time its file bears.
func (e *Entry) StoredAt() time.Time { return time.Unix(0, e.At) }

// Now is the time of a commit, in whole microseconds: what every system can give a file.
func Now() time.Time { return storable(time.Now()) }

// The times that a message can bear: an index keeps nanoseconds since 1970. There is a year left for the versions after the last one.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)
)

// storable is the time that a message bears that is stored at t, or the next one to it where a clock is as wrong as that.
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

// Next is the time of the commit of a new version: later than the one before, since the file's time tells them apart.
func (e *Entry) Next() time.Time {
	if now := Now(); now.After(e.StoredAt()) {
		return now
	}
	return e.StoredAt().Add(time.Microsecond)
}

func entryOf(a *message.Address, h head) Entry {
	return Entry{Position: a.Position, ID: a.ID, File: a.File, Size: h.len, Sum: h.sum, At: a.StoredAt.UnixNano(), Payloads: a.Payloads}
}

// Counts says how much of a line there is.
type Counts struct {
	Line  uuid.UUID `json:"line"`
	Base  int64     `json:"base"`  // messages it inherits
	Count int64     `json:"count"` // its own messages
	Bytes int64     `json:"bytes"` // of their envelopes
	Last  uuid.UUID `json:"last"`  // the id of the newest
	// Derived is how many of them have files of derived names: without any, nobody need look for those.
	Derived int64 `json:"derived,omitempty"`
	// Referring is how many messages and versions of them with references to blobs there ever were: without any,
	// nobody need look for references.
	Referring int64 `json:"referring,omitempty"`
	// Lost is how many of them have rows that are marked lost, or more: without any, nobody need search the rows for an id.
	Lost int64 `json:"lost,omitempty"`
}

// sane reports whether counts that were read can be true.
func (c Counts) sane() bool {
	return c.Base >= 0 && c.Count >= 0 && c.Bytes >= 0 && c.Base <= maxSeq && c.Count <= maxSeq
}

// End is the position behind the newest message.
func (c Counts) End() int64 { return c.Base + c.Count }

// add counts the next message.
func (c *Counts) add(e *Entry) {
	c.Count++
	c.Bytes += e.Size
	c.Last = e.ID
	if e.File != uuid.Nil && e.File != e.ID {
		c.Derived++
	}
	if e.Payloads > 0 {
		c.Referring++
	}
	if e.unfound() {
		c.Lost++
	}
}
