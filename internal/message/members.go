package message

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Members calls f for each member of a JSON object, in order, duplicates included. It fails with [ErrMalformed] if b is
// not one JSON object.
func Members(b []byte, f func(key string, v jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), Verbatim...) // a Buffer is read in place
	t, err := d.ReadToken()
	if err != nil {
		return malformed("%v", err)
	}
	if t.Kind() != '{' {
		return malformed("a JSON %s, expected an object", kindName(t.Kind()))
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return malformed("%v", err)
		}
		key := t.String()
		v, err := d.ReadValue()
		if err != nil {
			return malformed("%v", err)
		}
		if err := f(key, v); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return malformed("%v", err)
	}
	if rest := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return malformed("data after the object")
	}
	return nil
}

// Elements calls f for each element of a JSON array. It fails with [ErrMalformed] if b does not begin with an array.
func Elements(b []byte, f func(jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), Verbatim...) // a Buffer is read in place
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return malformed("no array")
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return malformed("%v", err)
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "array"
	case 'n':
		return "null"
	}
	return "boolean"
}

// Verbatim keeps a framework's text: duplicate keys, raw strings and number literals, and escaped halves of surrogate
// pairs ("\ud83d" at the end of a string that JavaScript cut). Callers check separately that the bytes are UTF-8.
var Verbatim = []jsontext.Options{
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
	jsontext.PreserveRawStrings(true),
	jsontext.CanonicalizeRawInts(false),
	jsontext.CanonicalizeRawFloats(false),
}
