package legacy

import (
	"bytes"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// Member is a member of an object, verbatim. A member without a value takes it from the context, which holds an
// equivalent value.
type Member struct {
	Name  jsontext.Value // a JSON string
	Value jsontext.Value // nil: the context holds it
}

// Is reports whether the member has the name.
func (m Member) Is(name string) bool {
	s, ok := Text(m.Name)
	return ok && s == name
}

// Members is an object in its original order; in JSON, an array of [name, value] or [name].
type Members []Member

// MembersOf returns the members of a JSON object.
func MembersOf(object jsontext.Value) (Members, error) {
	d := jsontext.NewDecoder(bytes.NewReader(object), message.Verbatim...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, damaged("not an object")
	}
	ms := Members{}
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, damaged("%v", err)
		}
		m := Member{Name: name.Clone()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, damaged("%v", err)
		}
		m.Value = value.Clone()
		ms = append(ms, m)
	}
	return ms, nil
}

// Last returns the index of the last member of a name, which is the valid one, or -1.
func (ms Members) Last(name string) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Is(name) {
			return i
		}
	}
	return -1
}

// Lasts returns the index of the last member of each name, which is the valid one.
func (ms Members) Lasts() map[string]int {
	last := make(map[string]int, len(ms))
	for i, m := range ms {
		name, _ := Text(m.Name)
		last[name] = i
	}
	return last
}

// Get returns the value of the last member of a name, nil if there is none.
func (ms Members) Get(name string) jsontext.Value {
	if i := ms.Last(name); i >= 0 {
		return ms[i].Value
	}
	return nil
}

// Object returns the members as an object. take returns the values of members without one; nil omits the member.
func (ms Members) Object(take func(name string) jsontext.Value) jsontext.Value {
	b := []byte{'{'}
	for _, m := range ms {
		value := m.Value
		if value == nil && take != nil {
			name, _ := Text(m.Name)
			value = take(name)
		}
		if value == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.Name...), ':'), value...)
	}
	return append(b, '}')
}

// MarshalJSON writes the array.
func (ms Members) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, m := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, '['), m.Name...)
		if m.Value != nil {
			b = append(append(b, ','), m.Value...)
		}
		b = append(b, ']')
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads the array. It fails with ErrDamaged.
func (ms *Members) UnmarshalJSON(b []byte) error {
	*ms = Members{}
	pairs, err := elements(b)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		m, err := elements(pair)
		if err != nil {
			return err
		}
		if len(m) < 1 || len(m) > 2 || m[0].Kind() != '"' {
			return damaged("a member is [name] or [name, value]")
		}
		member := Member{Name: m[0]}
		if len(m) == 2 {
			member.Value = m[1]
		}
		*ms = append(*ms, member)
	}
	return nil
}

// elements returns the elements of a JSON array.
func elements(array jsontext.Value) (out []jsontext.Value, err error) {
	err = message.Elements(array, func(v jsontext.Value) error {
		out = append(out, v.Clone())
		return nil
	})
	if err != nil {
		return nil, damaged("%v", err)
	}
	return out, nil
}
