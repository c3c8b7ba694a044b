package object

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Writer appends JSON to b, without white space. Metadata is written with each commit that changes it.
type Writer struct{ B []byte }

// Begin begins an object, and End ends it.
func (w *Writer) Begin() { w.B = append(w.B, '{') }
func (w *Writer) End()   { w.B = append(w.B, '}') }

// Key begins a member, or a later member after a comma.
func (w *Writer) Key(key string) {
	if w.B[len(w.B)-1] != '{' {
		w.B = append(w.B, ',')
	}
	w.B = append(appendQuoted(w.B, key), ':')
}

// Raw adds a member whose value is JSON without white space.
func (w *Writer) Raw(key, value string) {
	w.Key(key)
	w.B = append(w.B, value...)
}

// Value adds a member whose value may have white space; nil adds none.
func (w *Writer) Value(key string, value json.RawMessage) {
	if value != nil {
		w.Key(key)
		w.B = append(w.B, Compact(value)...)
	}
}

// Text adds a member that is a string.
func (w *Writer) Text(key, s string) {
	w.Key(key)
	w.B = appendQuoted(w.B, s)
}

// ID adds a member that is an id.
func (w *Writer) ID(key string, id uuid.UUID) {
	w.Key(key)
	w.B = append(w.B, '"')
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			w.B = append(w.B, '-')
		}
		w.B = hex.AppendEncode(w.B, part)
	}
	w.B = append(w.B, '"')
}

// Time adds a member that is a time, in UTC.
func (w *Writer) Time(key string, at time.Time) {
	w.Text(key, at.UTC().Format(time.RFC3339Nano))
}

// Number adds a member that is a number.
func (w *Writer) Number(key string, n int64) {
	w.Key(key)
	w.B = strconv.AppendInt(w.B, n, 10)
}

// Members adds the members of an object.
func (w *Writer) Members(o Object) {
	for _, m := range o.members {
		w.Value(m.Key, m.Value)
	}
}

// Optional adds a member unless its text is empty.
func (w *Writer) Optional(key, s string) {
	if s != "" {
		w.Text(key, s)
	}
}

// Object adds a member unless the object has none.
func (w *Writer) Object(key string, o Object) {
	if len(o.members) > 0 {
		w.Key(key)
		w.B = o.AppendTo(w.B)
	}
}

// WriteArray adds a member that is an array of objects.
func WriteArray[T any](w *Writer, key string, elements []T, write func(T, *Writer)) {
	w.Key(key)
	w.B = append(w.B, '[')
	for i, e := range elements {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		w.Begin()
		write(e, w)
		w.End()
	}
	w.B = append(w.B, ']')
}
