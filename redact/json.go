package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON replaces what is found in the strings of a JSON value, names of members included. The result is valid JSON, and
// has every other byte of the value. A number with a word of the caller becomes a string. What is not valid JSON is
// treated as a text.
func (r *Redactor) JSON(value []byte) Text {
	if r == nil {
		return Text{string(value)}
	}
	if !json.Valid(value) {
		return r.Text(string(value))
	}
	d := document{r: r, value: value}
	d.run()
	return Text{d.out.String()}
}

// document is one JSON value that is being written.
type document struct {
	r     *Redactor
	value []byte
	out   strings.Builder
	at    int // up to which the value is written
	name  string
	plain []byte // a string without escapes
}

func (d *document) run() {
	v := d.value
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			end := stringEnd(v, i)
			d.literal(i+1, end-1, d.isName(end))
			i = end
		case c == '-' || digit[c]:
			n := run(v[i:], number)
			d.number(i, i+n)
			i += n
		default:
			if c == '{' || c == '[' || c == ',' {
				d.name = ""
			}
			i++
		}
	}
	d.out.Write(v[d.at:])
}

var number = classOf("0-9", "+.eE", "-")

// stringEnd is the end of a string, after its quote.
func stringEnd(v []byte, start int) int {
	for i := start + 1; ; {
		n := bytes.IndexByte(v[i:], '"')
		i += n
		slashes := 0
		for v[i-1-slashes] == '\\' {
			slashes++
		}
		if i++; slashes%2 == 0 {
			return i
		}
	}
}

// isName reports whether the string that ends at a position is the name of a member.
func (d *document) isName(end int) bool {
	rest := d.value[end:]
	for len(rest) > 0 && rest[0] <= ' ' {
		rest = rest[1:]
	}
	return len(rest) > 0 && rest[0] == ':'
}

// literal writes a string, whose quotes stand around [start, end).
func (d *document) literal(start, end int, isName bool) {
	raw := d.value[start:end]
	text := string(raw)
	escaped := bytes.IndexByte(raw, '\\') >= 0
	if escaped {
		d.plain = d.plain[:0]
		for i := 0; i < len(raw); {
			var n int
			d.plain, n = unescape(d.plain, raw[i:])
			i += n
		}
		text = string(d.plain)
	}
	found := d.r.Find(text)
	if d.name != "" && d.r.kinds[Key] && isSecretName(d.name) && isSecret(text, true) && !strings.ContainsAny(text, " \n\t") {
		found = merged(text, append(found, Finding{Key, 0, len(text), "generic-api-key"}))
	}
	if isName {
		d.name = text
	} else {
		d.name = ""
	}
	from, plain := 0, 0 // how far the string is, with and without escapes
	position := func(at int) int {
		if !escaped {
			return at
		}
		for plain < at {
			var n int
			d.plain, n = unescape(d.plain[:0], raw[from:])
			from, plain = from+n, plain+len(d.plain)
		}
		return from
	}
	for _, f := range found {
		d.r.report(text, f)
		d.replace(start+position(f.Start), f.Kind.Replacement())
		d.at = start + position(f.End)
	}
}

// replace writes the value up to a position, and then a text.
func (d *document) replace(at int, with string) {
	d.out.Write(d.value[d.at:at])
	d.out.WriteString(with)
}

// number replaces a number that has a word of the caller.
func (d *document) number(start, end int) {
	d.name = ""
	if d.r.words == nil {
		return
	}
	text := string(d.value[start:end])
	if !d.r.words.MatchString(text) {
		return
	}
	d.r.report(text, Finding{Word, 0, len(text), "word"})
	d.replace(start, `"`+Word.Replacement()+`"`)
	d.at = end
}

// unescape adds the first character of a string, and returns how many bytes it has with its escape.
func unescape(b, raw []byte) ([]byte, int) {
	if raw[0] != '\\' {
		return append(b, raw[0]), 1
	}
	if raw[1] != 'u' {
		c := raw[1]
		if i := strings.IndexByte("bfnrt", c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		return append(b, c), 2
	}
	r := fourHex(raw[2:])
	if utf16.IsSurrogate(r) && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if pair := utf16.DecodeRune(r, fourHex(raw[8:])); pair != utf8.RuneError {
			return utf8.AppendRune(b, pair), 12
		}
	}
	return utf8.AppendRune(b, r), 6
}

func fourHex(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}
