package object

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Quoted returns a JSON string. Invalid UTF-8 is replaced.
func Quoted(s string) json.RawMessage { return appendQuoted(make([]byte, 0, len(s)+2), s) }

// appendQuoted appends a JSON string. Invalid UTF-8 is replaced.
func appendQuoted(b []byte, s string) []byte {
	if IsPlain(s) {
		b = append(append(b, '"'), s...)
		return append(b, '"')
	}
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// IsPlain reports whether a JSON string contains each character unescaped.
func IsPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

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

// Optional adds a member unless its text is empty.
func (w *Writer) Optional(key, s string) {
	if s != "" {
		w.Text(key, s)
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

// Compact removes insignificant white space, which metadata.json has and a log has not.
func Compact(v json.RawMessage) json.RawMessage {
	if isText := len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"'; isText || !bytes.ContainsAny(v, " \t\r\n") {
		return v
	}
	if c, err := jsontext.AppendFormat(nil, v, message.Verbatim...); err == nil && v != nil {
		return c
	}
	return v
}
