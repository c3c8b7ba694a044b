package plain

import (
	"strings"
	"unicode"
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
