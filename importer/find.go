package importer

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Stored messages are compared in chunks. Parallel sidechains take turns, so a few chunks are kept.
const (
	chunkRecords = 256
	chunksKept   = 8
)

type chunk struct {
	of      *branch
	at      int64
	records []Record
}

// spot is a place of a line, whatever branches show it.
type spot struct {
	line uuid.UUID
	at   int64
}

// read gives the message that was at a position of b when the import began.
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
		err = fmt.Errorf("%d messages where 1 to %d were asked for", len(recs), to-from)
	}
	if err != nil {
		return nil, fmt.Errorf("branch %q: from %d: %w", b.name, from, err)
	}
	return recs, nil
}

// find looks for a branch that begins like from up to the position of t and goes on with r, the next record
// of t; one of the name that t wants comes first. Only what was stored before counts: within this history ids are unique.
func (w *walk) find(t *target, from *branch, r *Record) (*branch, error) {
	at := t.at
	spans, ok := past(from, at)
	if !ok {
		return nil, nil
	}
	candidates := w.branches
	if b := w.named(t.name); b != nil {
		candidates = append([]*branch{b}, candidates...)
	}
	for _, b := range candidates {
		if b.before <= at || shared(spans, b.spans) < at {
			continue
		}
		stored, err := w.glance(b, at)
		if err != nil {
			return nil, err
		}
		if stored.ID != r.ID {
			continue
		}
		if stored, err = w.read(b, at); err != nil {
			return nil, err
		}
		if w.holds(t, &stored, r) {
			return b, nil
		}
	}
	return nil, nil
}

// past gives the spans that hold the first at messages of b. There are none to find where some of them
// are new.
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

// glance gives a message's id: of two hundred sidechains each looks at where the others begin, so what
// was seen is remembered.
func (w *walk) glance(b *branch, at int64) (Record, error) {
	s := spot{owner(b.spans, at), at}
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

// named finds a branch by name. Names that differ in case alone count as one, as stores refuse them.
func (w *walk) named(name string) *branch {
	for _, b := range w.branches {
		if strings.EqualFold(b.name, name) {
			return b
		}
	}
	return nil
}
