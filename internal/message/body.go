package message

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func valid(b []byte) bool { return utf8.Valid(b) && jsontext.Value(b).IsValid(Verbatim...) }

// Compact returns a framework's object without insignificant white space and otherwise unchanged. It does not change b.
// It fails with [ErrMalformed] if b is not one JSON object in valid UTF-8.
func Compact(b []byte) (json.RawMessage, error) { return compact(b, '{') }

// CompactArray is [Compact] for an array.
func CompactArray(b []byte) (json.RawMessage, error) { return compact(b, '[') }

func compact(b []byte, kind jsontext.Kind) (json.RawMessage, error) {
	if len(b) == 0 {
		return nil, malformed("empty")
	}
	if !utf8.Valid(b) {
		return nil, malformed("invalid UTF-8")
	}
	out, err := jsontext.AppendFormat(nil, b, Verbatim...)
	if err != nil {
		var syntactic *jsontext.SyntacticError
		if errors.As(err, &syntactic) {
			return nil, malformed("at byte %d: %w", syntactic.ByteOffset, syntactic.Err)
		}
		return nil, malformed("%v", err)
	}
	if len(out) == 0 {
		return nil, malformed("empty")
	}
	if is := jsontext.Value(out).Kind(); is != kind {
		return nil, malformed("a JSON %s, expected an %s", kindName(is), kindName(kind))
	}
	if d := depth(out); d > maxDepth {
		return nil, malformed("a nesting of %d exceeds the limit of %d", d, maxDepth)
	}
	return out, nil
}

// Describe reads the properties of a framework's object that do not depend on the framework: the role (its own, or that
// of its "message" or "author"), the type, and the time. Missing properties are empty.
func Describe(body []byte) (role, typ string, created time.Time) {
	var inner string
	_ = Members(body, func(key string, v jsontext.Value) error {
		switch key {
		case "role":
			role = Short(v)
		case "type":
			typ = Short(v)
		case "message", "author", "info":
			if v.Kind() == '{' && inner == "" {
				inner = roleOf(v)
			}
		case "timestamp", "created_at", "create_time", "createdAt", "created":
			if t := Time(v); !t.IsZero() && created.IsZero() {
				created = t
			}
		}
		return nil
	})
	if role == "" {
		role = inner
	}
	return role, typ, created
}

var errFound = errors.New("found")

func roleOf(object []byte) (role string) {
	_ = Members(object, func(key string, v jsontext.Value) error {
		if key == "role" {
			role = Short(v)
			return errFound
		}
		return nil
	})
	return role
}

// Short returns the content of a JSON string of at most 64 bytes, "" for any other value.
func Short(v jsontext.Value) string {
	if n := len(v) - 1; n > 0 && n <= 65 && v[0] == '"' && v[n] == '"' && isPlain(v[1:n]) {
		return string(v[1:n])
	}
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil || len(s) > 64 {
		return ""
	}
	return s
}

// isPlain reports whether the content of a JSON string stands for itself: it is ASCII without escapes.
func isPlain(content []byte) bool {
	return !slices.ContainsFunc(content, func(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c > '~' })
}

// Time reads a JSON value as a time: an RFC 3339 string, or a number since 1970 in seconds or, from 10^11 on, in
// milliseconds. Any other value gives the zero time.
func Time(v jsontext.Value) time.Time {
	switch v.Kind() {
	case '"':
		if t, err := time.Parse(time.RFC3339Nano, Short(v)); err == nil && ValidTime(t) {
			return t.UTC()
		}
	case '0':
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || f <= 0 || f > 1e14 {
			return time.Time{}
		}
		if f >= 1e11 {
			f /= 1000
		}
		sec, frac := math.Modf(f)
		if t := time.Unix(int64(sec), int64(math.Round(frac*1e6))*1000).UTC(); ValidTime(t) {
			return t
		}
	}
	return time.Time{}
}

// ValidTime reports whether RFC 3339 can represent a time in UTC: its year has four digits.
func ValidTime(t time.Time) bool {
	year := t.UTC().Year()
	return year > 0 && year < 10000
}

// maxDepth limits the nesting of a body. An envelope adds one level, and readers commonly stop at 10,000.
const maxDepth = 9_000

// depth returns the nesting depth of valid JSON.
func depth(b []byte) (deepest int) {
	now, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}
