package engine

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/google/uuid"
)

// Tx is a commit in preparation. It holds the context's lock. Its methods see what the methods before them did, but not
// the bodies of messages that this commit appends. After a method failed, the commit fails.
type Tx struct {
	conditions
	batch bool // each record stands for itself
	c     *Context
	ctx   context.Context
	blobs *BlobHold

	before, after uint64 // the newest commit before and after this one

	m         *Metadata // as this commit leaves it
	changed   bool      // m is a changed copy
	upkeep    bool      // which shows nothing new: the time of the last change stays
	updatedAt time.Time // of the change, if it happened elsewhere before; zero for now
	failure   error     // of the first method that failed

	items    []Item
	of       []*BatchResult // the result of each item; nil for a payload
	results  []*BatchResult // of all appended messages
	existed  []*BatchResult // of those that are stored already
	stored   map[*BatchResult]bool
	lines    map[uuid.UUID]*txLine
	bytes    map[uuid.UUID]int64          // by line: how much its envelopes grow
	fresh    map[uuid.UUID][]freshMessage // by id; several lines can have one
	payloads map[blob.Sum]bool            // in items
	durable  []func()                     // to call under the lock when the commit is durable

	commits []*index.Commit
	settled bool // they were waited for under the lock
	files   *fileBatch
	pending *fileBatch // the files that a killed process left pending
}

// txLine is a line to which a commit appends.
type txLine struct {
	from int64 // the position of the first new message
	ids  []uuid.UUID
}

// freshMessage is a message that a commit stores.
type freshMessage struct {
	line   uuid.UUID
	draft  *PendingMessage
	result *BatchResult
}

// reset begins the commit again, on the metadata m. The caller holds the lock.
func (tx *Tx) reset(m *Metadata) {
	*tx = Tx{
		conditions: tx.conditions, batch: tx.batch, c: tx.c, ctx: tx.ctx, blobs: tx.blobs, m: m,
		stored: map[*BatchResult]bool{}, payloads: map[blob.Sum]bool{}, fresh: map[uuid.UUID][]freshMessage{},
		lines: map[uuid.UUID]*txLine{}, bytes: map[uuid.UUID]int64{},
	}
}

// do runs one change. It remembers the failure, so that f cannot commit half of what it wanted.
func (tx *Tx) do(op, name string, f func() error) error {
	if tx.failure == nil {
		tx.failure = Wrap(Error{Op: op, Context: tx.c.Dir.ID, Branch: name}, f())
	}
	return tx.failure
}

// edit runs one change of the metadata.
func (tx *Tx) edit(op, name string, f func(m *Metadata) error) error {
	return tx.do(op, name, func() error {
		if !tx.changed {
			tx.m, tx.changed = tx.m.Clone(), true
		}
		return f(tx.m)
	})
}

// Metadata returns the metadata as the commit leaves it so far. The caller must not change it.
func (tx *Tx) Metadata() *Metadata { return tx.m }

// put adds a record, after the payloads that it refers to.
func (tx *Tx) put(payloads []Item, it Item, of *BatchResult) {
	if it.Envelope != nil {
		tx.bytes[it.Envelope.Line] += int64(len(it.Body)) - it.Was
	}
	tx.items = append(tx.c.AddPayloads(tx.items, payloads, tx.payloads), it)
	for len(tx.of) < len(tx.items)-1 {
		tx.of = append(tx.of, nil)
	}
	tx.of = append(tx.of, of)
}

// end returns the position of the next message of a line.
func (tx *Tx) end(line uuid.UUID) (int64, error) {
	if l := tx.lines[line]; l != nil {
		return l.from + int64(len(l.ids)), nil
	}
	return tx.c.End(tx.m, line)
}

// idBefore returns the id of the message before a position of a line's history.
func (tx *Tx) idBefore(line uuid.UUID, position int64) (uuid.UUID, error) {
	if len(tx.lines) > 0 && position > 0 {
		owner, err := branch.Segments(tx.m, line, position-1, position)
		if err != nil {
			return uuid.Nil, err
		}
		if l := tx.lines[owner[0].Line]; l != nil && position-1 >= l.from {
			return l.ids[position-1-l.from], nil
		}
	}
	return tx.c.IDBefore(tx.m, line, position)
}

// freshOn returns the message with an id that this commit stores, if a line shows it.
func (tx *Tx) freshOn(line, id uuid.UUID) (freshMessage, bool) {
	for _, f := range tx.fresh[id] {
		if f.line == line {
			return f, true
		}
		owner, err := branch.Segments(tx.m, line, f.result.Position, f.result.Position+1)
		if err == nil && len(owner) > 0 && owner[0].Line == f.line {
			return f, true
		}
	}
	return freshMessage{}, false
}
