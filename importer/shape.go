package importer

import (
	"bytes"
	"errors"
	"io"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// shape describes the beginning of a JSON value by the members of the first object.
type shape struct {
	array     bool // the object is the first element of an array
	empty     bool // an array without elements
	element   bool // an object exists
	whole     bool // the object is complete
	truncated bool // it continues beyond the bytes read
	spans     bool // it covers several lines
	keys      []string
	kinds     map[string]jsontext.Kind
	values    map[string]string   // short strings
	inner     map[string][]string // for members with an object, or a list of objects: the names in the first object
}

// shapeOf reads as far as it can: detection sees a file's first bytes, not whole values.
func shapeOf(b []byte) (s shape) {
	s.kinds, s.values, s.inner = map[string]jsontext.Kind{}, map[string]string{}, map[string][]string{}
	d := jsontext.NewDecoder(bytes.NewReader(b), lenient...)
	if d.PeekKind() == '[' {
		_, _ = d.ReadToken()
		s.array = true
		if d.PeekKind() == ']' {
			_, _ = d.ReadToken()
			s.empty = !bytes.ContainsFunc(b[d.InputOffset():], notSpace)
			return s
		}
	}
	if d.PeekKind() != '{' {
		return s
	}
	_, _ = d.ReadToken()
	s.element = true
	begin := d.InputOffset()
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			break
		}
		key := t.String()
		kind := d.PeekKind()
		s.keys = append(s.keys, key)
		s.kinds[key] = kind
		v, err := d.ReadValue()
		if err != nil {
			s.truncated = errors.Is(err, io.ErrUnexpectedEOF)
			break
		}
		s.values[key] = text(v, maxName)
		s.look(key, v)
	}
	if !s.truncated {
		_, err := d.ReadToken()
		s.whole = err == nil
		s.truncated = errors.Is(err, io.ErrUnexpectedEOF)
	}
	end := d.InputOffset()
	if s.truncated {
		end = int64(len(b))
	}
	s.spans = (s.whole || s.truncated) && bytes.ContainsRune(b[begin:end], '\n')
	return s
}

// look notes the members of v, or of the first element of v, if that is an object. key is the name of v.
func (s *shape) look(key string, v jsontext.Value) {
	_ = elements(v, func(first jsontext.Value) error {
		v = first.Clone()
		return io.EOF
	})
	if v.Kind() != '{' {
		return
	}
	s.inner[key] = []string{}
	_ = message.Members(v, func(name string, v jsontext.Value) error {
		s.inner[key] = append(s.inner[key], name)
		if name == "id" {
			s.values[key+".id"] = text(v, maxName)
		}
		return nil
	})
}
