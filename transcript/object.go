package transcript

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Object holds the members of a JSON object, unparsed.
type Object map[string]json.RawMessage

// ObjectOf returns the members of a JSON object, nil for another value.
func ObjectOf(v json.RawMessage) Object {
	var o Object
	if KindOf(v) != '{' || json.Unmarshal(v, &o) != nil {
		return nil
	}
	return o
}

// KindOf is the first byte of a JSON value, 0 if there is none.
func KindOf(v json.RawMessage) byte {
	if v = bytes.TrimLeft(v, " \t\r\n"); len(v) > 0 {
		return v[0]
	}
	return 0
}

// Text returns the first of the members that is a text and not empty, or else "".
func (o Object) Text(keys ...string) string {
	for _, k := range keys {
		var s string
		if KindOf(o[k]) == '"' && json.Unmarshal(o[k], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// first returns the first of the members that exists.
func (o Object) first(keys ...string) json.RawMessage {
	for _, k := range keys {
		if o[k] != nil {
			return o[k]
		}
	}
	return nil
}

// isTrue reports whether a member is true.
func (o Object) isTrue(key string) bool { return string(bytes.TrimSpace(o[key])) == "true" }

// List returns the elements of a JSON array, nil for another value.
func List(v json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if KindOf(v) != '[' || json.Unmarshal(v, &l) != nil {
		return nil
	}
	return l
}

// ValueAt returns the value at an RFC 6901 pointer, nil if there is none.
func ValueAt(v json.RawMessage, pointer string) json.RawMessage {
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if KindOf(v) == '[' {
			i, err := strconv.Atoi(token)
			all := List(v)
			if err != nil || i < 0 || i >= len(all) {
				return nil
			}
			v = all[i]
			continue
		}
		v = ObjectOf(v)[token]
	}
	return v
}
