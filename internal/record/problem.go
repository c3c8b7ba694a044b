package record

import (
	"errors"
	"strings"
	"unicode"

	"github.com/ctxdir/ctxdir"
)

// Problem is an error as one line; empty for none.
func Problem(err error) string {
	if err == nil {
		return ""
	}
	return OneLine(err.Error())
}

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

// isPayload reports whether an error is about a payload that cannot be read.
func isPayload(err error) bool {
	var e *ctxdir.Error
	return errors.As(err, &e) && e.Op == "read the payload"
}

// payloadError is an error of reading a body, without the message.
func payloadError(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, payloadError(e))
		}
		return errors.Join(all...)
	}
	var e *ctxdir.Error
	if isPayload(err) && errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}
