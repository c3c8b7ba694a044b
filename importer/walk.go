package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// A batch to store; whichever is reached first. Variables, so that tests need not be large.
var (
	batchRecords = 1000
	batchBytes   = 8 << 20
)

// target is a branch of a history: what its records go to, one after the other. Positions in it are
// those of the stored branch that it is on: whatever the history was forked from, both begin alike.
type target struct {
	name   string // wanted; the stored branch may bear another one
	parent *target
	base   int64 // how many messages of parent it begins with
	attrs  map[string]json.RawMessage
	side   bool // beside the conversation, like a sidechain: not what people follow
	byID   bool // what is stored under the same id stays, whatever the history says now

	at        int64   // position of its next record
	on        *branch // nil before its first record
	appending bool    // what on holds before at is this history; what comes next is new
}

// branch is a stored one.
type branch struct {
	name   string
	before int64  // messages when the import began; 0 if it was made since
	length int64  // with those to come from pending
	spans  []Span // as they were when the import began

	// Of a branch made since: the branch that was there of whose messages it begins with the first common.
	made   bool
	root   *branch
	common int64

	appender *target
	pending  []Record
}

// walk stores a history: it goes along the stored branches as long as they hold the same, and goes on
// from there. Where a branch goes on otherwise, the history continues on the branch that goes on like it
// or, where there is none, on a new one.
type walk struct {
	ctx      context.Context
	conv     Conversation
	same     func(stored, found json.RawMessage) bool // whether two bodies are one record
	branches []*branch

	pending, pendingBytes int
	chunks                []*chunk
	known                 map[spot]Record // without bodies: what lies at forks

	messages, added, skipped int64
	active                   *target // what the last record that people follow went to
}

func newWalk(ctx context.Context, conv Conversation) (*walk, error) {
	list, err := conv.Branches(ctx)
	if err != nil {
		return nil, err
	}
	w := &walk{ctx: ctx, conv: conv, same: func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }, known: map[spot]Record{}}
	for _, b := range list {
		w.branches = append(w.branches, &branch{name: b.Name, before: b.Len(), length: b.Len(), spans: b.Spans})
	}
	return w, nil
}

// holds says whether a stored message is the record r. One that cannot be read counts as unchanged.
func (w *walk) holds(t *target, stored, r *Record) bool {
	return stored.ID == r.ID && (t.byID || stored.Body == nil || w.same(stored.Body, r.Body))
}

// put stores the next record of t, or finds it stored.
func (w *walk) put(t *target, r Record) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	found, err := w.step(t, &r)
	if err != nil {
		return err
	}
	t.at++
	w.messages++
	if found {
		w.skipped++
	}
	if !t.side {
		w.active = t
	}
	if w.pending >= batchRecords || w.pendingBytes >= batchBytes {
		return w.flushAll()
	}
	return nil
}

func (w *walk) step(t *target, r *Record) (found bool, err error) {
	from, fresh := t.on, t.on == nil
	if fresh {
		t.at = t.base
		if t.parent != nil {
			from = t.parent.on
		}
	} else if !t.appending && t.at < t.on.before {
		stored, err := w.read(t.on, t.at)
		if err != nil {
			return false, err
		}
		if w.holds(t, &stored, r) {
			return true, nil
		}
	}
	if !t.appending {
		b, err := w.find(t, from, r)
		if err != nil {
			return false, err
		}
		if b != nil {
			t.on = b
			return true, nil
		}
		if fresh || t.at < t.on.before || t.on.appender != nil {
			if t.on, err = w.begin(t, from, r); err != nil {
				return false, err
			}
		}
		t.appending, t.on.appender = true, t
	}
	b := t.on
	b.pending = append(b.pending, *r)
	b.length++
	w.pending++
	w.pendingBytes += len(r.Body)
	return false, nil
}

// begin makes the branch that t goes on with. Its name tells why it is there: a branch of the history has
// the name that the history gives it; one that is there because what is stored went another way is called
// import-….
func (w *walk) begin(t *target, from *branch, r *Record) (*branch, error) {
	marked := t.name + "-" + short(r.ID[:], r.Body)
	if t.on != nil || t.parent == nil && !t.side {
		marked = "import-" + short(r.ID[:], r.Body)
	}
	name := t.name
	if t.on != nil {
		name = marked
	}
	for n := 2; ; n++ {
		b := w.named(name)
		if b == nil {
			break
		}
		if w.awaits(b, from, t.at) {
			return b, nil
		}
		if name != t.name {
			name = fmt.Sprintf("%s-%d", marked, n)
		} else {
			name = marked
		}
	}
	b := &branch{name: name, length: t.at, made: true, root: from, common: t.at}
	source := ""
	if from != nil && t.at > 0 {
		source = from.name
		// The fork point has to be there.
		if err := w.flush(from); err != nil {
			return nil, err
		}
		if from.made {
			b.root, b.common = from.root, min(from.common, t.at)
		}
	}
	if err := w.conv.Fork(w.ctx, name, source, t.at, t.attrs); err != nil {
		return nil, fmt.Errorf("branch %q: %w", name, err)
	}
	w.branches = append(w.branches, b)
	return b, nil
}

// awaits says whether b was there before, begins like from up to a position and ends there: the empty
// main of a new context, or a branch that an import made that was broken off before it got a message.
func (w *walk) awaits(b, from *branch, at int64) bool {
	if b.made || b == from || b.length != at || b.appender != nil {
		return false
	}
	spans, ok := past(from, at)
	return ok && shared(spans, b.spans) >= at
}

func (w *walk) flush(b *branch) error {
	if len(b.pending) == 0 {
		return nil
	}
	n := int64(len(b.pending))
	if err := w.conv.Append(w.ctx, b.name, b.length-n, b.pending); err != nil {
		return fmt.Errorf("branch %q: %w", b.name, err)
	}
	w.added += n
	for i := range b.pending {
		w.pendingBytes -= len(b.pending[i].Body)
	}
	w.pending -= len(b.pending)
	clear(b.pending)
	b.pending = b.pending[:0]
	return nil
}

func (w *walk) flushAll() error {
	for _, b := range w.branches {
		if err := w.flush(b); err != nil {
			return err
		}
	}
	return nil
}

// finish stores what is left. Which branch people see changes only when there is something new to see.
func (w *walk) finish() error {
	if err := w.flushAll(); err != nil {
		return err
	}
	if w.added > 0 && w.active != nil {
		return w.conv.SetActive(w.ctx, w.active.on.name)
	}
	return nil
}
