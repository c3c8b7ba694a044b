package context

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/message"
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
func (o *Object) UnmarshalJSON(b []byte) error {
	o.members = nil
	if string(bytes.TrimSpace(b)) == "null" {
		return nil
	}
	at := map[string]int{}
	return message.Members(b, func(key string, v jsontext.Value) error {
		m := Member{key, compact(bytes.Clone(v))}
		if i, twice := at[key]; twice {
			o.members[i] = m
			return nil
		}
		at[key] = len(o.members)
		o.members = append(o.members, m)
		return nil
	})
}

// add adds a member that the object does not have yet.
func (o *Object) add(key string, value json.RawMessage) {
	o.members = append(o.members, Member{key, value})
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
	b = append(b, '{')
	for i, m := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, m.Key), ':')
		b = append(b, compact(m.Value)...)
	}
	return append(b, '}')
}

// arrayOf encodes an array of objects.
func arrayOf[T any](elements []T, object func(T) Object) json.RawMessage {
	b := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = object(e).appendTo(b)
	}
	return append(b, ']')
}

func quoted(s string) json.RawMessage { return appendQuoted(make([]byte, 0, len(s)+2), s) }

// appendQuoted appends a JSON string. Invalid UTF-8 is replaced.
func appendQuoted(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
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

// decode is json.Unmarshal of a valid value. It decodes what metadata mostly has without a scan and without reflection.
func decode(v json.RawMessage, into any) error {
	switch into := into.(type) {
	case *json.RawMessage:
		*into = v
		return nil
	case *Object:
		return into.UnmarshalJSON(v)
	case *[]Object:
		if *into = []Object{}; v[0] == '[' {
			return message.Elements(v, func(element jsontext.Value) error {
				*into = append(*into, Object{})
				return (*into)[len(*into)-1].UnmarshalJSON(element)
			})
		}
	case *time.Time:
		return into.UnmarshalJSON(v)
	case *string:
		if text, ok := plainText(v); ok {
			*into = string(text)
			return nil
		}
	case *uuid.UUID:
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
