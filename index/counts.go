package index

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// Counts are the counts of a line.
type Counts struct {
	Line  uuid.UUID `json:"line"`
	Base  int64     `json:"base"`  // messages that it inherits
	Count int64     `json:"count"` // its own messages
	Bytes int64     `json:"bytes"` // of their envelopes
	Last  uuid.UUID `json:"last"`  // the id of the newest
	// Greatest is at least as great as each id that the line ever had.
	Greatest uuid.UUID `json:"greatest"`
	// Referring counts the messages, and versions of them, that ever referred to blobs.
	Referring int64 `json:"referring,omitempty"`
}

// End returns the position after the newest message.
func (c Counts) End() int64 { return c.Base + c.Count }

// IsAbove reports whether an id is greater than each that the line ever had.
func (c Counts) IsAbove(id uuid.UUID) bool { return bytes.Compare(id[:], c.Greatest[:]) > 0 }

func (c *Counts) sane() bool {
	const most = journal.MaxSeq
	return c.Line != uuid.Nil && c.Base >= 0 && c.Count >= 0 && c.Bytes >= 0 && c.Base <= most && c.Count <= most
}

// add counts the next message, or with was ≥ 0 another version of one.
func (c *Counts) add(e *Entry, was int64) {
	if c.IsAbove(e.ID) {
		c.Greatest = e.ID
	}
	if e.Payloads > 0 {
		c.Referring++
	}
	if was >= 0 {
		c.Bytes = max(c.Bytes+e.Size-was, 0)
	} else {
		c.Count++
		c.Bytes += e.Size
	}
	if e.Position == c.End()-1 {
		c.Last = e.ID
	}
}

// saved is the state of a context as a log begins with it, and a segment ends with it.
type saved struct {
	Lines    []Counts        `json:"lines"`
	Newest   int64           `json:"newest"`   // the time of the newest commit of a message, microseconds since 1970
	Metadata json.RawMessage `json:"metadata"` // null if the context has none yet
}

// encode leaves the metadata as it is written.
func (s saved) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func parseSaved(b []byte) (s saved, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%w: state: %w", ErrDamaged, err)
	}
	known := map[uuid.UUID]bool{}
	for i := range s.Lines {
		if c := &s.Lines[i]; !c.sane() || known[c.Line] {
			return s, fmt.Errorf("%w: state of line %s", ErrDamaged, c.Line)
		}
		known[s.Lines[i].Line] = true
	}
	return s, nil
}

// trim is the body of a record that cuts a line: what no branch shows went to the trash.
type trim struct {
	Line  uuid.UUID `json:"line"`
	End   int64     `json:"end"`   // the line ends at this position from now on
	Bytes int64     `json:"bytes"` // of the envelopes that remain of its own messages
	Last  uuid.UUID `json:"last"`  // the id of the newest of them
}

func parseTrim(b []byte) (t trim, err error) {
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("%w: trim record: %w", ErrDamaged, err)
	}
	if t.Line == uuid.Nil || t.End < 0 || t.Bytes < 0 {
		return t, fmt.Errorf("%w: trim record of line %s at position %d", ErrDamaged, t.Line, t.End)
	}
	return t, nil
}

// erasure is the body of a record that erases messages of a line.
type erasure struct {
	Line      uuid.UUID `json:"line"`
	Positions []int64   `json:"positions"` // in order
	Bytes     int64     `json:"bytes"`     // of the envelopes that remain of its own messages
	// Lost says that their content was lost before they came into this store, not erased.
	Lost bool `json:"lost,omitempty"`
}

func (x *erasure) gone() archive.Gone {
	if x.Lost {
		return archive.Lost
	}
	return archive.Erased
}

func parseErasure(b []byte) (x erasure, err error) {
	if err := json.Unmarshal(b, &x); err != nil {
		return x, fmt.Errorf("%w: erase record: %w", ErrDamaged, err)
	}
	last := int64(-1)
	for _, p := range x.Positions {
		if p <= last {
			return x, fmt.Errorf("%w: erase record: position %d after position %d", ErrDamaged, p, last)
		}
		last = p
	}
	if x.Line == uuid.Nil || x.Bytes < 0 {
		return x, fmt.Errorf("%w: erase record of line %s", ErrDamaged, x.Line)
	}
	return x, nil
}
