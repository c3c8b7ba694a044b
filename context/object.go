package context

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/message"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Object is a JSON object whose members keep their order and spelling, but for white space. So unknown members survive
// a read and a write.
type Object struct {
	members []Member
}

// Member is one key and its value.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Members returns the members in order.
func (o Object) Members() []Member { return slices.Clone(o.members) }

// Get returns the value of key, nil without one.
func (o Object) Get(key string) json.RawMessage {
	for _, m := range o.members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Text returns the value of key if it is a string.
func (o Object) Text(key string) string {
	var s string
	if v := o.Get(key); v != nil && json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// Set sets the value of key; nil removes key.
func (o *Object) Set(key string, value json.RawMessage) {
	members := slices.Clone(o.members) // copies of an Object share members until one is changed
	i := slices.IndexFunc(members, func(m Member) bool { return m.Key == key })
	switch {
	case value == nil && i >= 0:
		members = slices.Delete(members, i, i+1)
	case value == nil:
	case i >= 0:
		members[i].Value = value
	default:
		members = append(members, Member{key, value})
	}
	o.members = members
}

// SetText sets key to a string; an empty string removes key.
func (o *Object) SetText(key, value string) {
	if value == "" {
		o.Set(key, nil)
		return
	}
	o.Set(key, mustMarshal(value))
}

// UnmarshalJSON parses any object. The last value of a repeated key counts.
func (o *Object) UnmarshalJSON(b []byte) error { return o.parse(bytes.Clone(b)) }

// parse is UnmarshalJSON for an object that keeps b.
func (o *Object) parse(b []byte) error {
	o.members = nil
	switch string(bytes.TrimSpace(b)) {
	case "null", "{}":
		return nil
	}
	var few [16]Member // on the stack
	members := few[:0]
	var at map[string]int // where the members are, once there are many
	err := message.Members(b, func(key string, v jsontext.Value) error {
		i, twice := at[key]
		if at == nil {
			i = slices.IndexFunc(members, func(m Member) bool { return m.Key == key })
			twice = i >= 0
		}
		m := Member{key, compact(json.RawMessage(v))}
		if twice {
			members[i] = m
			return nil
		}
		members = append(members, m)
		switch {
		case at != nil:
			at[key] = len(members) - 1
		case len(members) == len(few):
			at = make(map[string]int, 2*len(few))
			for i := range members {
				at[members[i].Key] = i
			}
		}
		return nil
	})
	o.members = slices.Clone(members)
	return err
}

// MarshalJSON writes the members in order.
func (o Object) MarshalJSON() ([]byte, error) { return o.raw(), nil }

func (o Object) raw() json.RawMessage {
	size := 2
	for _, m := range o.members {
		size += len(m.Key) + len(m.Value) + len(`"":,`)
	}
	return o.appendTo(make([]byte, 0, size))
}

func (o Object) appendTo(b []byte) []byte {
	w := objectWriter{b}
	w.begin()
	w.members(o)
	w.end()
	return w.b
}

// objectWriter appends JSON to b, without white space. Metadata is written with each commit that changes it.
type objectWriter struct{ b []byte }

func (w *objectWriter) begin() { w.b = append(w.b, '{') }
func (w *objectWriter) end()   { w.b = append(w.b, '}') }

// key begins a member, or a later member after a comma.
func (w *objectWriter) key(key string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(appendQuoted(w.b, key), ':')
}

// raw adds a member whose value is JSON without white space.
func (w *objectWriter) raw(key, value string) {
	w.key(key)
	w.b = append(w.b, value...)
}

// value adds a member whose value may have white space; nil adds none.
func (w *objectWriter) value(key string, value json.RawMessage) {
	if value != nil {
		w.key(key)
		w.b = append(w.b, compact(value)...)
	}
}

func (w *objectWriter) text(key, s string) {
	w.key(key)
	w.b = appendQuoted(w.b, s)
}

func (w *objectWriter) id(key string, id uuid.UUID) {
	w.key(key)
	w.b = append(w.b, '"')
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			w.b = append(w.b, '-')
		}
		w.b = hex.AppendEncode(w.b, part)
	}
	w.b = append(w.b, '"')
}

func (w *objectWriter) time(key string, at time.Time) {
	w.text(key, at.UTC().Format(time.RFC3339Nano))
}

func (w *objectWriter) number(key string, n int64) {
	w.key(key)
	w.b = strconv.AppendInt(w.b, n, 10)
}

// members adds the members of an object.
func (w *objectWriter) members(o Object) {
	for _, m := range o.members {
		w.value(m.Key, m.Value)
	}
}

// optional adds a member unless its text is empty.
func (w *objectWriter) optional(key, s string) {
	if s != "" {
		w.text(key, s)
	}
}

// object adds a member unless the object has none.
func (w *objectWriter) object(key string, o Object) {
	if len(o.members) > 0 {
		w.key(key)
		w.b = o.appendTo(w.b)
	}
}

// writeArray adds a member that is an array of objects.
func writeArray[T any](w *objectWriter, key string, elements []T, write func(T, *objectWriter)) {
	w.key(key)
	w.b = append(w.b, '[')
	for i, e := range elements {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.begin()
		write(e, w)
		w.end()
	}
	w.b = append(w.b, ']')
}

func quoted(s string) json.RawMessage { return appendQuoted(make([]byte, 0, len(s)+2), s) }

// appendQuoted appends a JSON string. Invalid UTF-8 is replaced.
func appendQuoted(b []byte, s string) []byte {
	if isPlain(s) {
		b = append(append(b, '"'), s...)
		return append(b, '"')
	}
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// isPlain reports whether a JSON string spells each character as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// take removes key and decodes its value. No copy of the object may share its members.
func (o *Object) take(key string, into any) error {
	i := slices.IndexFunc(o.members, func(m Member) bool { return m.Key == key })
	if i < 0 {
		return nil
	}
	v := o.members[i].Value
	o.members = slices.Delete(o.members, i, i+1)
	return decode(v, into)
}

// takeAll removes the members of fields and decodes their values. No copy of the object may share its members.
func (o *Object) takeAll(fields ...field) error {
	rest := o.members[:0]
	for _, m := range o.members {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == m.Key })
		if i < 0 {
			rest = append(rest, m)
		} else if err := decode(m.Value, fields[i].into); err != nil {
			return fmt.Errorf("%q: %w", m.Key, err)
		}
	}
	clear(o.members[len(rest):])
	o.members = rest
	return nil
}

// decode is json.Unmarshal of a valid value. It decodes what metadata mostly has without a scan and without reflection.
func decode(v json.RawMessage, into any) error {
	switch into := into.(type) {
	case *json.RawMessage:
		*into = v
		return nil
	case *Object:
		return into.parse(v)
	case *[]Object:
		if *into = []Object{}; v[0] == '[' {
			return message.Elements(v, func(element jsontext.Value) error {
				*into = append(*into, Object{})
				return (*into)[len(*into)-1].parse(element)
			})
		}
	case *time.Time:
		return into.UnmarshalJSON(v)
	case *string:
		if text, ok := plainText(v); ok {
			*into = string(text)
			return nil
		}
	case *[]Line:
		return jsonv2.Unmarshal(v, into, message.Verbatim...)
	case *uuid.UUID:
		if string(v) == "null" { // the parent of most contexts
			return nil
		}
		if text, ok := plainText(v); ok {
			return into.UnmarshalText(text)
		}
	case *int64:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			*into = n
			return nil
		}
	}
	return json.Unmarshal(v, into)
}

// plainText returns the content of a JSON string that has no escapes.
func plainText(v json.RawMessage) (text []byte, ok bool) {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 || !utf8.Valid(v) {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

// mustMarshal encodes a value whose encoding cannot fail, without escaping for HTML.
func mustMarshal(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("ctxdir: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
