package main

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a terminal shows and what files are called comes from strangers: titles, messages, file names. This file is the one place that says
// what of it reaches a terminal or a file system.

// obeyed reports whether a terminal does something else with a character than to show it: control characters (C0, DEL,
// C1), line and paragraph separators, and the marks, overrides and isolates that turn the direction of writing. Other
// characters of no width stay: emoji and several scripts need joiners, and a terminal does nothing with them.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// oneLine makes one line of a text that a terminal only shows: the direction of writing stays, everything else that is
// obeyed becomes a blank.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case obeyed(r):
			return ' '
		}
		return r
	}, s)
}

// harmless takes out of a text of several lines what a terminal would obey.
func harmless(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || !obeyed(r):
			return r
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return -1
	}, s)
}

// sanitiser is what stands between the results and a terminal, whatever verb they are of. A character may come in several pieces.
type sanitiser struct {
	colours bool   // the command's own styles pass
	json    bool   // results are JSON: what a terminal would obey is written as \uXXXX, which means the same there
	open    []byte // the beginning of a character, or of a style
}

// shown returns what the terminal gets of the next piece.
func (s *sanitiser) shown(p []byte) []byte {
	b := slices.Concat(s.open, p)
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if style, more := styleAt(b); s.colours && !s.json && (style > 0 || more) {
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
		case r == '\n' || r == '\t' || !obeyed(r):
			out = utf8.AppendRune(out, r) // a byte that is no character becomes U+FFFD: some terminals take it for C1
		case s.json:
			out = fmt.Appendf(out, `\u%04x`, r)
		case r == '\u2028' || r == '\u2029':
			out = append(out, '\n')
		}
		b = b[size:]
	}
	s.open = bytes.Clone(b)
	return out
}

// styleAt returns the length of a style of ours that b begins with; more says that b may be the beginning of one.
func styleAt(b []byte) (n int, more bool) {
	for _, style := range []string{"0", bold, dim, red, yellow, redder, greener, bluish, purple} {
		code := "\x1b[" + style + "m"
		if bytes.HasPrefix(b, []byte(code)) {
			return len(code), false
		}
		more = more || strings.HasPrefix(code, string(b[:min(len(b), len(code))]))
	}
	return 0, more
}

const (
	mostName   = 200 // bytes of a part of a file's name, which leaves room for a number
	mostFolder = 8   // folders that a name may lead through
)

// reserved are names that mean a device on Windows, whatever extension they have.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)`)

// safeName makes a file's name of a path from a message, with slashes, "" where nothing is left of it. It leads nowhere
// else, and no part of it is an option, hidden, a device, or looks like another one.
func safeName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/") {
		if part = safePart(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts[max(len(parts)-mostFolder-1, 0):], "/")
}

func safePart(part string) string {
	part = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case obeyed(r) || unicode.Is(unicode.Cf, r): // in a name, what is not seen only makes it look like another one
			return -1
		}
		return r
	}, part)
	ext := path.Ext(part)
	if stem := strings.TrimSuffix(part, ext); len(part) > mostName && len(ext) < 20 {
		part = cutText(stem, mostName-len(ext)) + ext
	}
	part = cutText(part, mostName)
	part = strings.TrimRightFunc(strings.TrimLeftFunc(part, func(r rune) bool { return r == '-' || r == '.' || unicode.IsSpace(r) }),
		func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	if reserved.MatchString(part) {
		part = "_" + part
	}
	return part
}

// cutText returns at most n bytes of a text, and no part of a character.
func cutText(s string, n int) string {
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}
