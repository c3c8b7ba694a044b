package term

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Titles, messages and file names come from strangers. This file alone decides which of their characters reach a
// terminal.

// OneLine makes a text safe for one line: it drops characters that change the direction of writing, and turns other
// control characters into blanks.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case ControlsTerminal(r):
			return ' '
		}
		return r
	}, s)
}

// ControlsTerminal reports whether a character controls a terminal: control characters (C0, DEL, C1), line and
// paragraph separators, and the marks, overrides and isolates that change the direction of writing. Other characters
// without width pass: emoji and several scripts need joiners.
func ControlsTerminal(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// WithoutControls drops the control characters of a text, except line breaks and tabs.
func WithoutControls(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || !ControlsTerminal(r):
			return r
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return -1
	}, s)
}

// A Sanitiser protects a terminal from all results. A character may be split between writes.
type Sanitiser struct {
	Colours bool   // the styles of this package pass
	JSON    bool   // escape control characters as \uXXXX, which keeps the JSON equal
	open    []byte // the beginning of a character or a style
}

// Shown returns the bytes of the next write that reach the terminal.
func (s *Sanitiser) Shown(p []byte) []byte {
	b := slices.Concat(s.open, p)
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if style, more := styleAt(b); s.Colours && !s.JSON && (style > 0 || more) {
			if more {
				break
			}
			out, b = append(out, b[:style]...), b[style:]
			continue
		}
		if !utf8.FullRune(b) {
			break
		}
		r, size := utf8.DecodeRune(b)
		switch {
		case r == '\n' || r == '\t' || !ControlsTerminal(r):
			out = utf8.AppendRune(out, r) // an invalid byte becomes U+FFFD: some terminals take it for C1
		case s.JSON:
			out = fmt.Appendf(out, `\u%04x`, r)
		case r == '\u2028' || r == '\u2029':
			out = append(out, '\n')
		}
		b = b[size:]
	}
	s.open = bytes.Clone(b)
	return out
}

// styleAt returns the length of the style at the beginning of b. more says that b may be cut within one.
func styleAt(b []byte) (n int, more bool) {
	for _, style := range styles {
		code := "\x1b[" + style + "m"
		if bytes.HasPrefix(b, []byte(code)) {
			return len(code), false
		}
		more = more || strings.HasPrefix(code, string(b[:min(len(b), len(code))]))
	}
	return 0, more
}
