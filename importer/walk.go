package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// walk stores a batch when it reaches either limit. Tests lower these variables.
var (
	batchRecords = 1000
	batchBytes   = 8 << 20
)

// resume makes t continue behind a stored message.
func (t *target) resume(behind *target, base int64) {
	t.name, t.parent, t.base, t.slice = "resume", behind, base, true
}

func newWalk(ctx context.Context, conv Conversation) (*walk, error) {
	list, err := conv.Branches(ctx)
	if err != nil {
		return nil, err
	}
	w := &walk{ctx: ctx, conv: conv, same: func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }, known: map[linePosition]Record{}}
	for _, b := range list {
		w.branches = append(w.branches, &branch{name: b.Name, before: b.Len(), length: b.Len(), spans: b.Spans})
	}
	return w, nil
}

// size is the number of messages that the branches had when the import began, and of the branches.
func (w *walk) size() (n int64) {
	for _, b := range w.branches {
		if !b.made {
			n += b.before + 1
		}
	}
	return n
}

// hold notes that b holds r at a position, where the stored message may be an earlier state of it.
func (w *walk) hold(t *target, b *branch, stored, r *Record) error {
	if !t.update || stored.Body == nil || w.same(stored.Body, r.Body) {
		return nil
	}
	w.replaced++
	b.changed = append(b.changed, *r)
	b.changedBytes += len(r.Body)
	if len(b.changed) < batchRecords && b.changedBytes < batchBytes {
		return nil
	}
	return w.flushChanged(b)
}

func (w *walk) flushChanged(b *branch) error {
	if len(b.changed) == 0 {
		return nil
	}
	if err := w.conv.Replace(w.ctx, b.name, b.changed); err != nil {
		return fmt.Errorf("branch %q: %w", b.name, err)
	}
	clear(b.changed)
	b.changed, b.changedBytes = b.changed[:0], 0
	return nil
}

// put stores the next record of t, unless it is stored already.
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
			return true, w.hold(t, t.on, &stored, r)
		}
	}
	if !t.appending {
		b, stored, err := w.find(t, from, r)
		if err != nil {
			return false, err
		}
		if b != nil {
			t.on = b
			return true, w.hold(t, b, &stored, r)
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

// begin makes the branch on which t continues. A branch of the history has the name from the history. A branch whose
// reason is a diverged stored branch is called import-….
func (w *walk) begin(t *target, from *branch, r *Record) (*branch, error) {
	if t.slice && t.on == nil && from.length == t.at && from.appender == nil {
		return from, nil
	}
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
		// The fork point must exist.
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

// awaits reports whether b existed before, begins like from, and ends at position at. That is the empty main of a new
// context, or a branch of an import that stopped before its first message.
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
		if err := w.flushChanged(b); err != nil {
			return err
		}
	}
	return nil
}

// finish stores the rest. It changes the active branch only if there are new messages.
func (w *walk) finish() error {
	if err := w.flushAll(); err != nil {
		return err
	}
	if w.added > 0 && w.active != nil {
		return w.conv.SetActive(w.ctx, w.active.on.name)
	}
	return nil
}
