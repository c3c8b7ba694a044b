package blob

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Ref is a reference in a stored message.
type Ref struct {
	Sum       Sum
	Size      int64    // bytes of the payload
	MediaType string   // of a binary payload, if known
	Encoding  Encoding // how the payload became text
	Prefix    string   // the text before the payload, as in data:image/png;base64,
	Offset    int      // where the reference begins in the stored message, in bytes
	Path      string   // RFC 6901 pointer to it; empty when longer than 1 KiB, and from Externalise
	Problem   string   // why no store can resolve it; empty for a valid reference

	spelling spelling
	end      int
}

// Encoding is how a payload becomes text.
type Encoding string

func (e Encoding) codec() *base64.Encoding {
	switch e {
	case Base64:
		return base64.StdEncoding
	case Base64Unpadded:
		return base64.RawStdEncoding
	case Base64URL:
		return base64.URLEncoding
	case Base64URLUnpadded:
		return base64.RawURLEncoding
	}
	return nil
}

// The encodings. The empty one means that the payload is the text.
const (
	Base64            Encoding = "base64" // RFC 4648, padded
	Base64Unpadded    Encoding = "base64-unpadded"
	Base64URL         Encoding = "base64url"
	Base64URLUnpadded Encoding = "base64url-unpadded"
)

// UnavailableError reports a payload that could not be put back in its place.
type UnavailableError struct {
	Ref Ref
	Err error
}

func (e *UnavailableError) Error() string {
	if e.Ref.Sum == (Sum{}) { // the reference names no payload
		return fmt.Sprintf("payload at %q: %v", e.Ref.Path, e.Err)
	}
	return fmt.Sprintf("payload %s at %q: %v", e.Ref.Sum, e.Ref.Path, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

const refName = "$blob"

// appendTo appends the reference in its stored form. Members come in this order; the name that marks a reference is
// first.
func (r *Ref) appendTo(b []byte) []byte {
	b = append(b, `{"`+refName+`":"`...)
	b = append(b, r.Sum.String()...)
	b = append(b, `","size":`...)
	b = appendInt(b, r.Size)
	b = appendMember(b, "spelling", r.spelling.String())
	b = appendMember(b, "encoding", string(r.Encoding))
	b = appendMember(b, "prefix", r.Prefix)
	b = appendMember(b, "media_type", r.MediaType)
	return append(b, '}')
}

func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":"`...)
	return append(spelling(0).spell(b, []byte(value)), '"')
}

// MayRefer reports whether a stored message may have a reference, or a name that looks like one: a name that begins
// with a dollar sign, as it is or as \u0024. It searches for the rarest character of each spelling.
func MayRefer(stored []byte) bool {
	return MayEscape(stored) || follows(stored, '4', `"\u002`)
}

// MayEscape is MayRefer for a message without references: before a name that looks like one, a writer puts a dollar
// sign without escapes.
func MayEscape(stored []byte) bool { return follows(stored, '$', `"`) }

// follows reports whether c follows a text anywhere in b.
func follows(b []byte, c byte, text string) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], c)
		if i < 0 {
			return false
		}
		if at += i; at >= len(text) && string(b[at-len(text):at]) == text {
			return true
		}
	}
}

// markers returns the number of leading $ of a name that is otherwise "blob", else 0. inside is the name as spelled,
// without quotation marks.
func markers(inside []byte) int {
	if bytes.IndexByte(inside, '\\') >= 0 {
		var ok bool
		if inside, _, ok = decode(nil, inside); !ok {
			return 0
		}
	}
	dollars, ok := bytes.CutSuffix(inside, []byte(refName[1:]))
	if !ok || len(bytes.Trim(dollars, "$")) > 0 {
		return 0
	}
	return len(dollars)
}

// atReference reports whether the scanner's name is the first of its object and makes the object a reference. before is
// the token before the name.
func (s *scanner) atReference(before token) bool {
	return before == tokenObject && markers(s.inside()) == 1
}

// reference reads the reference whose first name the scanner is at, and moves past it. It ignores unknown members.
func (s *scanner) reference(offset int) Ref {
	r := Ref{Offset: offset, Size: -1}
	problem := func(format string, args ...any) {
		if r.Problem == "" {
			r.Problem = fmt.Sprintf(format, args...)
		}
	}
	depth := len(s.stack)
	seen := map[string]bool{}
	for t := tokenName; t == tokenName; t = s.next() {
		var room [32]byte
		name, _, _ := decode(room[:0], s.inside())
		value, text := s.value()
		if s.bad {
			break
		}
		key := string(name[:min(len(name), 32)])
		if seen[key] {
			problem("member %q twice", key)
		}
		switch key {
		default:
			continue
		case refName:
			sum, err := ParseSum(text)
			if err != nil {
				problem("%v", err)
			}
			r.Sum = sum
		case "size":
			if r.Size = parseSize(value); r.Size < 0 {
				problem("size is not a number of bytes")
			}
		case "spelling":
			var ok bool
			if r.spelling, ok = parseSpelling(text); !ok || text == "" {
				problem("unknown spelling")
			}
		case "encoding":
			if r.Encoding = Encoding(text); r.Encoding.codec() == nil {
				problem("unknown encoding")
			}
		case "prefix":
			if r.Prefix = text; text == "" {
				problem("prefix is not a text")
			}
		case "media_type":
			if r.MediaType = text; text == "" {
				problem("media type is not a text")
			}
		}
		seen[key] = true
	}
	if !seen["size"] {
		problem("no size")
	}
	if len(s.stack) >= depth {
		s.fail()
	}
	r.end = s.end
	return r
}

// value returns the value of the member whose name the scanner is at, and its text if it is a non-empty string. It
// moves past the value.
func (s *scanner) value() (raw []byte, text string) {
	for s.pos < len(s.b) && (s.b[s.pos] == ':' || isSpace(s.b[s.pos])) {
		s.pos++
	}
	start := s.pos
	if start == len(s.b) {
		s.fail()
		return nil, ""
	}
	switch s.b[start] {
	case '"':
		if s.next() != tokenString {
			return nil, ""
		}
		if b, _, ok := decode(nil, s.inside()); ok && utf8.Valid(b) {
			text = string(b)
		}
	case '{', '[':
		s.next()
		s.skip()
	default:
		for s.pos < len(s.b) && s.b[s.pos] != ',' && s.b[s.pos] != '}' && !isSpace(s.b[s.pos]) {
			s.pos++
		}
	}
	return s.b[start:s.pos], text
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// parseSize reads a count of bytes, or returns -1.
func parseSize(b []byte) int64 {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || string(appendInt(nil, n)) != string(b) {
		return -1
	}
	return n
}
