package blob

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// spelling records how a JSON string was written beyond what JSON demands, so that it can be written again. The zero
// spelling is that of JSON.stringify: `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, other control characters as \u00XX in
// lower case, and all else unescaped.
type spelling uint8

const (
	spelledASCII spelling = 1 << iota // all but ' ' to '~' is \uXXXX (Python; with "slash", PHP)
	spelledHTML                       // < > & are \uXXXX (with "lines", Go)
	spelledLines                      // U+2028 and U+2029 are \uXXXX
	spelledSlash                      // / is \/
	spelledUpper                      // hexadecimal digits are in upper case (Java, .NET)
)

// spellingNames lists the names in the order that a reference uses.
var spellingNames = []struct {
	name string
	is   spelling
}{
	{"ascii", spelledASCII}, {"html", spelledHTML}, {"lines", spelledLines}, {"slash", spelledSlash}, {"upper", spelledUpper},
}

func (s spelling) String() string {
	var names []string
	for _, n := range spellingNames {
		if s&n.is != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, "+")
}

// parseSpelling reads the output of [spelling.String] for a non-zero spelling that a writer uses.
func parseSpelling(text string) (s spelling, ok bool) {
	for name := range strings.SplitSeq(text, "+") {
		for _, n := range spellingNames {
			if n.name == name {
				s |= n.is
			}
		}
	}
	redundant := s&spelledASCII != 0 && s&spelledLines != 0
	return s, s.String() == text && !redundant
}

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// spell appends text as the inside of a JSON string. The text must be valid UTF-8.
func (s spelling) spell(b, text []byte) []byte {
	for len(text) > 0 {
		n := s.plain(text)
		b = append(b, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			break
		}
		if c := shortEscape(text[0]); c != 0 {
			b, text = append(b, '\\', c), text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if r > 0xFFFF {
			var high rune
			high, r = utf16.EncodeRune(r)
			b = s.hex(b, high)
		}
		b = s.hex(b, r)
	}
	return b
}

// size returns the length of the output of spell for a text.
func (s spelling) size(text []byte) (size int64) {
	for len(text) > 0 {
		n := s.plain(text)
		size += int64(n)
		if text = text[n:]; len(text) == 0 {
			break
		}
		if shortEscape(text[0]) != 0 {
			size, text = size+int64(len(`\n`)), text[1:]
			continue
		}
		r, width := utf8.DecodeRune(text)
		text = text[width:]
		if size += int64(len(`\u0000`)); r > 0xFFFF {
			size += int64(len(`\u0000`))
		}
	}
	return size
}

// shortEscape returns the character after the backslash in the escape of c, 0 if the escape has digits.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

func (s spelling) hex(b []byte, r rune) []byte {
	digits := lowerDigits
	if s&spelledUpper != 0 {
		digits = upperDigits
	}
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// plain returns the length of the leading text that needs no escape. It looks at eight bytes at a time.
func (s spelling) plain(text []byte) int {
	i := 0
	for len(text)-i >= 8 {
		found := s.find(binary.LittleEndian.Uint64(text[i:]))
		if found == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(found) / 8; s&spelledLines == 0 || s.escapes(text[i:]) {
			return i
		}
		i++
	}
	for i < len(text) && !s.escapes(text[i:]) {
		i++
	}
	return i
}

// escapes reports whether a text begins with an escape.
func (s spelling) escapes(text []byte) bool {
	switch c := text[0]; c {
	case '"', '\\':
		return true
	case '/':
		return s&spelledSlash != 0
	case '<', '>', '&':
		return s&spelledHTML != 0
	default:
		return c < ' ' || c >= 0x7f && s&spelledASCII != 0 ||
			s&spelledLines != 0 && len(text) >= 3 && c == 0xE2 && text[1] == 0x80 && text[2]|1 == 0xA9
	}
}

// find marks the bytes of a word that may begin an escape. The mark of the first one is right, later ones may be wrong.
func (s spelling) find(word uint64) (marks uint64) {
	marks = (word-' '*eachByte)&^word&highBits | mark(word, '"') | mark(word, '\\')
	if s == 0 {
		return marks
	}
	if s&spelledSlash != 0 {
		marks |= mark(word, '/')
	}
	if s&spelledHTML != 0 {
		marks |= mark(word, '<') | mark(word, '>') | mark(word, '&')
	}
	if s&spelledASCII != 0 {
		marks |= word&highBits | mark(word, 0x7f)
	}
	if s&spelledLines != 0 {
		marks |= mark(word, 0xE2)
	}
	return marks
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// mark marks the bytes of a word that are c.
func mark(word uint64, c byte) uint64 {
	word ^= uint64(c) * eachByte
	return (word - eachByte) &^ word & highBits
}

// decode returns the text of the inside of a JSON string and its apparent spelling; only spelling the text again proves
// it. decode fails if the string holds half a surrogate pair, which has no bytes. The text is b if nothing is escaped,
// else it is appended to room.
func decode(room, b []byte) (text []byte, s spelling, ok bool) {
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return b, 0, true
	}
	text = room
	for {
		text = append(text, b[:i]...)
		if b = b[i:]; len(b) < 2 {
			return text, s, len(b) == 0
		}
		size := 2
		switch c := b[1]; c {
		case '"', '\\':
			text = append(text, c)
		case '/':
			text = append(text, c)
			s |= spelledSlash
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		case 'u':
			r, n := unescape(b)
			if n == 0 {
				return nil, 0, false
			}
			size = n
			text = utf8.AppendRune(text, r)
			s |= spelled(r, b[:n])
		default:
			return nil, 0, false
		}
		b = b[size:]
		if i = bytes.IndexByte(b, '\\'); i < 0 {
			i = len(b)
		}
	}
}

// spelled returns the spelling that a character written as \uXXXX suggests for its string.
func spelled(r rune, escape []byte) (s spelling) {
	switch {
	case r == 0x2028 || r == 0x2029:
		s = spelledLines
	case r >= 0x7f:
		s = spelledASCII
	case r == '<' || r == '>' || r == '&':
		s = spelledHTML
	}
	if bytes.ContainsAny(escape, "ABCDEF") {
		s |= spelledUpper
	}
	return s
}

// unescape reads \uXXXX, or a pair of them, and returns its length, or 0 if it is neither or half a pair.
func unescape(b []byte) (rune, int) {
	r := hex4(b)
	if !utf16.IsSurrogate(r) {
		if r < 0 {
			return 0, 0
		}
		return r, 6
	}
	if r = utf16.DecodeRune(r, hex4(b[6:])); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// respell returns the spelling that turns text into inside again, byte for byte, if one exists.
func respell(seems spelling, text, inside []byte) (spelling, bool) {
	if len(text) == len(inside) {
		return 0, true // nothing was escaped: valid JSON holds no raw character that needs an escape
	}
	if seems&spelledASCII != 0 {
		seems &^= spelledLines // ASCII includes it
	}
	return seems, bytes.Equal(seems.spell(nil, text), inside)
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
