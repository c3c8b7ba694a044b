package context

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir/internal/object"
)

// A change is the difference between a revision of the metadata and the next one: an object with the members of the
// metadata that changed, whole, or null for those that are gone. Of the tables (branches, lines, removed), it has only
// the rows that changed, as [FROM, COUNT, ROW, …]: the ROWs replace COUNT rows from index FROM on. So a fork of a context
// with a thousand branches commits a few hundred bytes.

// changeOf is the member of a change that says to which metadata it applies.
const changeOf = "of"

// origin identifies the metadata to which a change applies: two histories may have the same revision.
type origin struct {
	Revision  int64     `json:"revision"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Change returns the change that leads from m to next, the next revision, after the checks of [CommittableMetadata]. It
// returns nil if only a copy can say it.
func (m *Metadata) Change(next *Metadata) (json.RawMessage, error) {
	if err := next.committable(m); err != nil {
		return nil, err
	}
	if next.Revision != m.Revision+1 || m.Extra.Get(changeOf) != nil || next.Extra.Get(changeOf) != nil {
		return nil, nil
	}
	w, was := object.Writer{B: make([]byte, 0, 1<<10)}, object.Writer{B: make([]byte, 0, 1<<10)}
	w.Begin()
	w.Key(changeOf)
	w.Begin()
	w.Number("revision", m.Revision)
	w.Time("updated_at", m.UpdatedAt)
	w.End()
	for _, member := range metadataMembers {
		switch member.key {
		case "branches":
			writeSplice(&w, member.key, m.Branches, next.Branches, Branch.equal, Branch.write)
		case "lines":
			writeSplice(&w, member.key, m.Lines, next.Lines, Line.equal, Line.write)
		case "removed":
			writeSplice(&w, member.key, m.Removed, next.Removed, Removed.equal, Removed.write)
		default:
			was.B = append(was.B[:0], '{')
			member.write(m, &was)
			writeDiffering(&w, member.key, was.B[1:], func() { member.write(next, &w) })
		}
	}
	for _, x := range next.Extra.Members() {
		if value := m.Extra.Get(x.Key); value == nil || !sameJSON(value, x.Value) {
			w.Value(x.Key, x.Value)
		}
	}
	for _, x := range m.Extra.Members() {
		if next.Extra.Get(x.Key) == nil {
			w.Raw(x.Key, "null")
		}
	}
	w.End()
	next.check = false
	return w.B, nil
}

// writeDiffering adds a member as write does, unless was is the same one; null stands for a member that write does not add.
func writeDiffering(w *object.Writer, key string, was []byte, write func()) {
	start := len(w.B)
	write()
	switch now := bytes.TrimPrefix(w.B[start:], []byte(",")); {
	case bytes.Equal(was, now):
		w.B = w.B[:start]
	case len(now) == 0:
		w.Raw(key, "null")
	}
}

// Apply returns the metadata that changes lead to, in order. Its errors wrap ErrMetadata.
func (m *Metadata) Apply(changes ...json.RawMessage) (*Metadata, error) {
	next := m
	for _, change := range changes {
		applied, err := next.apply(change)
		if err != nil {
			return nil, fmt.Errorf("%w: change to revision %d: %w", ErrMetadata, next.Revision, err)
		}
		next = applied
	}
	if err := next.validateAfter(m); err != nil {
		return nil, fmt.Errorf("%w: result of the changes up to revision %d: %w", ErrMetadata, next.Revision, err)
	}
	return next, nil
}

// apply is Apply for one change, without the checks of what it leads to.
func (m *Metadata) apply(change json.RawMessage) (*Metadata, error) {
	var c Object
	if err := c.UnmarshalJSON(change); err != nil {
		return nil, err
	}
	var of origin
	if err := c.Take(changeOf, &of); err != nil {
		return nil, err
	}
	if of.Revision != m.Revision || !of.UpdatedAt.Equal(m.UpdatedAt) {
		return nil, fmt.Errorf("it applies to revision %d, updated at %s", of.Revision, of.UpdatedAt)
	}
	next := *m
	for _, f := range next.fields() {
		value := c.Get(f.Key)
		if value == nil {
			continue
		}
		reflect.ValueOf(f.Into).Elem().SetZero() // m keeps what next shares with it
		if string(value) == "null" {
			c.Set(f.Key, nil)
		} else if err := c.Take(f.Key, f.Into); err != nil {
			return nil, fmt.Errorf("%q: %w", f.Key, err)
		}
	}
	if next.ID != m.ID || next.Revision != m.Revision+1 {
		return nil, fmt.Errorf("it results in revision %d of context %s", next.Revision, next.ID)
	}
	err := errors.Join(
		splice(&c, "branches", &next.Branches, parseObject(branchOf)),
		splice(&c, "lines", &next.Lines, parseLine),
		splice(&c, "removed", &next.Removed, parseObject(removedOf)),
	)
	for _, x := range c.Members() {
		if string(x.Value) == "null" {
			x.Value = nil
		}
		next.Extra.Set(x.Key, x.Value)
	}
	return &next, err
}

func (l Line) equal(other Line) bool { return l == other }

func (b Branch) equal(other Branch) bool {
	return b.Name == other.Name && b.Line == other.Line && sameJSON(b.SystemPrompt, other.SystemPrompt) &&
		slices.EqualFunc(b.Extra.Members(), other.Extra.Members(), func(x, y Member) bool { return x.Key == y.Key && sameJSON(x.Value, y.Value) })
}

func (r Removed) equal(other Removed) bool {
	return r.At.Equal(other.At) && r.Why == other.Why && r.Branch.equal(other.Branch)
}

// writeSplice writes the change of a table, unless there is none.
func writeSplice[T any](
	w *object.Writer, table string, before, after []T, equal func(T, T) bool, write func(T, *object.Writer),
) {
	from := 0
	for from < min(len(before), len(after)) && equal(before[from], after[from]) {
		from++
	}
	behind := 0
	for behind < min(len(before), len(after))-from && equal(before[len(before)-1-behind], after[len(after)-1-behind]) {
		behind++
	}
	rows := after[from : len(after)-behind]
	if len(rows) == 0 && len(after) == len(before) {
		return
	}
	w.Key(table)
	w.B = append(w.B, '[')
	w.B = append(strconv.AppendInt(w.B, int64(from), 10), ',')
	w.B = strconv.AppendInt(w.B, int64(len(before)-behind-from), 10)
	for _, row := range rows {
		w.B = append(w.B, ',')
		w.Begin()
		write(row, w)
		w.End()
	}
	w.B = append(w.B, ']')
}

// splice takes the change of a table out of c, and applies it.
func splice[T any](c *Object, key string, table *[]T, parse func(json.RawMessage) (T, error)) error {
	var elements []json.RawMessage
	if c.Get(key) == nil {
		return nil
	}
	if err := c.Take(key, &elements); err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	if len(elements) < 2 {
		return fmt.Errorf("%q: expected at least 2 elements, got %d", key, len(elements))
	}
	from, err := strconv.Atoi(string(elements[0]))
	count, cerr := strconv.Atoi(string(elements[1]))
	if err != nil || cerr != nil || from < 0 || count < 0 || from > len(*table) || count > len(*table)-from {
		return fmt.Errorf("%q: %s rows from index %s exceed the table of %d", key, elements[1], elements[0], len(*table))
	}
	rows := make([]T, 0, len(elements)-2)
	for _, raw := range elements[2:] {
		row, err := parse(raw)
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		rows = append(rows, row)
	}
	*table = slices.Concat((*table)[:from], rows, (*table)[from+count:])
	return nil
}

func parseLine(raw json.RawMessage) (l Line, err error) {
	err = json.Unmarshal(raw, &l)
	return l, err
}

func parseObject[T any](of func(Object) (T, error)) func(json.RawMessage) (T, error) {
	return func(raw json.RawMessage) (row T, err error) {
		var o Object
		if err := o.UnmarshalJSON(raw); err != nil {
			return row, err
		}
		return of(o)
	}
}

// CommittableMetadata is RawMetadata, after checks that readers could use it. m is then what a reader parses.
func CommittableMetadata(m *Metadata) (json.RawMessage, error) {
	if err := m.committable(&Metadata{}); err != nil {
		return nil, err
	}
	raw := RawMetadata(m)
	if len(raw) > MaxMetadata/2 { // metadata.json has indentation
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMetadata, len(raw), MaxMetadata/2)
	}
	m.check = false
	return raw, nil
}

// committable returns an error if readers could not use the metadata, which follows valid metadata, or is the first.
func (m *Metadata) committable(was *Metadata) error {
	if err := m.validateAfter(was); err != nil {
		return fmt.Errorf("%w: refused to write invalid metadata: %w", ErrMetadata, err)
	}
	for _, x := range m.Extra.Members() { // a repeated member would replace the engine's
		known := func(k metadataMember) bool { return k.key == x.Key }
		if x.Key == "ctxdir" || x.Key == sumsMember || slices.ContainsFunc(metadataMembers, known) {
			return fmt.Errorf("%w: refused to write a second %q as an unknown member", ErrMetadata, x.Key)
		}
	}
	return nil
}
