// Package object has JSON objects that keep the order and form of their members, and writes JSON without reflection:
// metadata is read and written with each commit that changes it.
package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Object is a JSON object whose members keep their order and form, except for white space. So unknown members survive
// a read and a write.
type Object struct {
	members []Member
}

// Member is one key and its value.
type Member struct {
	Key   string
	Value json.RawMessage
}

// New returns an object with these members.
func New(members []Member) Object { return Object{members} }

// Len returns the number of members.
func (o Object) Len() int { return len(o.members) }

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
	o.Set(key, MustMarshal(value))
}

// UnmarshalJSON parses any object. The last value of a repeated key counts.
func (o *Object) UnmarshalJSON(b []byte) error { return o.Parse(bytes.Clone(b)) }

// Parse is UnmarshalJSON for an object that keeps b.
func (o *Object) Parse(b []byte) error {
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
		m := Member{key, Compact(json.RawMessage(v))}
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
func (o Object) MarshalJSON() ([]byte, error) { return o.Raw(), nil }

// Raw returns the object without white space.
func (o Object) Raw() json.RawMessage {
	size := 2
	for _, m := range o.members {
		size += len(m.Key) + len(m.Value) + len(`"":,`)
	}
	return o.AppendTo(make([]byte, 0, size))
}

// AppendTo appends the object to b.
func (o Object) AppendTo(b []byte) []byte {
	w := Writer{b}
	w.Begin()
	w.Members(o)
	w.End()
	return w.B
}

// Members adds the members of an object.
func (w *Writer) Members(o Object) {
	for _, m := range o.members {
		w.Value(m.Key, m.Value)
	}
}

// Object adds a member unless the object has none.
func (w *Writer) Object(key string, o Object) {
	if len(o.members) > 0 {
		w.Key(key)
		w.B = o.AppendTo(w.B)
	}
}

// Take removes key and decodes its value. No copy of the object may share its members.
func (o *Object) Take(key string, into any) error {
	i := slices.IndexFunc(o.members, func(m Member) bool { return m.Key == key })
	if i < 0 {
		return nil
	}
	v := o.members[i].Value
	o.members = slices.Delete(o.members, i, i+1)
	return Decode(v, into)
}

// Field says where a member is decoded to.
type Field struct {
	Key  string
	Into any
}

// TakeAll removes the members of fields and decodes their values. No copy of the object may share its members.
func (o *Object) TakeAll(fields ...Field) error {
	rest := o.members[:0]
	for _, m := range o.members {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == m.Key })
		if i < 0 {
			rest = append(rest, m)
		} else if err := Decode(m.Value, fields[i].Into); err != nil {
			return fmt.Errorf("%q: %w", m.Key, err)
		}
	}
	clear(o.members[len(rest):])
	o.members = rest
	return nil
}

// Decode is json.Unmarshal of a valid value. It decodes what metadata mostly has without a scan and without reflection.
func Decode(v json.RawMessage, into any) error {
	switch into := into.(type) {
	case *json.RawMessage:
		*into = v
		return nil
	case *Object:
		return into.Parse(v)
	case *[]Object:
		if *into = []Object{}; v[0] == '[' {
			return message.Elements(v, func(element jsontext.Value) error {
				*into = append(*into, Object{})
				return (*into)[len(*into)-1].Parse(element)
			})
		}
	case *time.Time:
		return into.UnmarshalJSON(v)
	case *string:
		if text, ok := PlainText(v); ok {
			*into = string(text)
			return nil
		}
	case *uuid.UUID:
		if string(v) == "null" { // the parent of most contexts
			return nil
		}
		if text, ok := PlainText(v); ok {
			return into.UnmarshalText(text)
		}
	case *int64:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			*into = n
			return nil
		}
	case json.Unmarshaler:
		return into.UnmarshalJSON(v)
	}
	return json.Unmarshal(v, into)
}

// PlainText returns the content of a JSON string that has no escapes.
func PlainText(v json.RawMessage) (text []byte, ok bool) {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 || !utf8.Valid(v) {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

// MustMarshal encodes a value whose encoding cannot fail, without escaping for HTML.
func MustMarshal(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("ctxdir: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Texts returns the members of the object whose value is a text, nil without one.
func (o Object) Texts() map[string]string {
	var texts map[string]string
	for _, m := range o.members {
		if len(m.Value) == 0 || m.Value[0] != '"' {
			continue
		}
		if texts == nil {
			texts = make(map[string]string, len(o.members))
		}
		texts[m.Key] = o.Text(m.Key)
	}
	return texts
}

// SetTexts makes texts the members whose value is a text. It keeps the order and form of those that stay equal, and
// the members with other values.
func (o *Object) SetTexts(texts map[string]string) error {
	for key, text := range texts {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(text) {
			return fmt.Errorf("label %q=%q: the name must not be empty, and both must be valid UTF-8", key, text)
		}
	}
	was := o.Texts()
	for key := range was {
		if _, ok := texts[key]; !ok {
			o.Set(key, nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if now, ok := was[key]; !ok || now != texts[key] {
			o.Set(key, Quoted(texts[key]))
		}
	}
	return nil
}
