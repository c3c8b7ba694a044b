package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// target is a branch of a history, to which records go in order. Its positions equal those of the stored branch that it
// is on, since both begin with the messages before the fork.
type target struct {
	name   string // wanted; the stored branch may have another one
	parent *target
	base   int64 // number of messages of parent that it begins with
	attrs  map[string]json.RawMessage
	side   bool // beside the conversation, like a sidechain: people do not follow it
	byID   bool // a message stored under the same id stays, even if the history changed
	slice  bool // continues the stored branch of parent, if that ends at base
	update bool // a message stored under the same id with another body is replaced

	at        int64   // position of the next record
	on        *branch // nil before the first record
	appending bool    // on holds this history up to at; later records are new
}

// branch is a stored branch.
type branch struct {
	name   string
	before int64  // length when the import began; 0 if this import made it
	length int64  // including pending
	spans  []Span // as when the import began

	// If this import made the branch: its first common messages come from root, a branch that existed before.
	made   bool
	root   *branch
	common int64

	appender *target
	pending  []Record

	changed      []Record // later states of stored messages
	changedBytes int
}

// walk stores a history. It follows the stored branches while they hold the same messages, and appends from there.
// Where a stored branch diverges, the history continues on a branch that agrees with it, or else on a new one.
type walk struct {
	ctx      context.Context
	conv     Conversation
	same     func(stored, found json.RawMessage) bool // whether two bodies are one record
	branches []*branch

	pending, pendingBytes int
	chunks                []*chunk
	known                 map[linePosition]Record // records at forks, without bodies

	messages, added, skipped, replaced int64

	active *target // target of the last record that people follow
}

// walk compares stored messages in chunks, and keeps a few because parallel sidechains alternate.
const (
	chunkRecords = 256
	chunksKept   = 8
)

type chunk struct {
	of      *branch
	at      int64
	records []Record
}

// linePosition is a position of a line, in any branch that shows it.
type linePosition struct {
	line uuid.UUID
	at   int64
}

// read returns the message at a position of b from before the import.
func (w *walk) read(b *branch, at int64) (Record, error) {
	for i, c := range w.chunks {
		if c.of == b && c.at <= at && at < c.at+int64(len(c.records)) {
			copy(w.chunks[1:i+1], w.chunks[:i])
			w.chunks[0] = c
			return c.records[at-c.at], nil
		}
	}
	recs, err := w.fetch(b, at, min(at+chunkRecords, b.before))
	if err != nil {
		return Record{}, err
	}
	if len(w.chunks) == chunksKept {
		w.chunks = w.chunks[:chunksKept-1]
	}
	w.chunks = append([]*chunk{{b, at, recs}}, w.chunks...)
	return recs[0], nil
}

func (w *walk) fetch(b *branch, from, to int64) ([]Record, error) {
	recs, err := w.conv.Messages(w.ctx, b.name, from, to)
	if err == nil && (len(recs) == 0 || int64(len(recs)) > to-from) {
		err = fmt.Errorf("the store returned %d messages instead of 1 to %d", len(recs), to-from)
	}
	if err != nil {
		return nil, fmt.Errorf("branch %q: from %d: %w", b.name, from, err)
	}
	return recs, nil
}

// find returns a branch that begins like from up to the position of t and continues with r, the next record of t. It
// tries the branch with the wanted name first. Only messages from before the import count: within one history, ids are
// unique.
func (w *walk) find(t *target, from *branch, r *Record) (found *branch, stored Record, err error) {
	at := t.at
	spans, ok := past(from, at)
	if !ok {
		return nil, stored, nil
	}
	candidates := w.branches
	if b := w.named(t.name); b != nil {
		candidates = append([]*branch{b}, candidates...)
	}
	for _, b := range candidates {
		if b.before <= at || shared(spans, b.spans) < at {
			continue
		}
		if stored, err = w.glance(b, at); err != nil {
			return nil, stored, err
		}
		if stored.ID != r.ID {
			continue
		}
		if stored, err = w.read(b, at); err != nil {
			return nil, stored, err
		}
		if w.holds(t, &stored, r) {
			return b, stored, nil
		}
	}
	return nil, stored, nil
}

// past returns the spans that hold the first at messages of b. ok is false if some of these messages are new.
func past(b *branch, at int64) (spans []Span, ok bool) {
	switch {
	case b == nil || at == 0:
		return nil, true
	case !b.made:
		return b.spans, at <= b.before
	case b.root == nil || b.common < at:
		return nil, false
	}
	return b.root.spans, true
}

// glance returns a message's id. It remembers ids, since each of two hundred sidechains looks at the beginnings of the
// others.
func (w *walk) glance(b *branch, at int64) (Record, error) {
	s := linePosition{owner(b.spans, at), at}
	if r, ok := w.known[s]; ok {
		return r, nil
	}
	recs, err := w.fetch(b, at, at+1)
	if err != nil {
		return Record{}, err
	}
	w.known[s] = Record{ID: recs[0].ID}
	return w.known[s], nil
}

// named finds a branch by name. It ignores case, as stores refuse names that differ only in case.
func (w *walk) named(name string) *branch {
	for _, b := range w.branches {
		if strings.EqualFold(b.name, name) {
			return b
		}
	}
	return nil
}

// holds reports whether a stored message is the record r. An unreadable message counts as unchanged.
func (w *walk) holds(t *target, stored, r *Record) bool {
	return stored.ID == r.ID && (t.byID || t.update || stored.Body == nil || w.same(stored.Body, r.Body))
}
