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

	"github.com/ctxdir/ctxdir/internal/record"
)

// Titles, messages and file names come from strangers. This file alone decides which of their characters reach a
// terminal or a file system; [record.ControlsTerminal] says which are dangerous.

// oneLine makes a text safe for one line.
func oneLine(s string) string { return record.OneLine(s) }

// withoutControls drops the control characters of a text, except line breaks and tabs.
func withoutControls(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || !record.ControlsTerminal(r):
			return r
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return -1
	}, s)
}

// sanitiser protects a terminal from all results. A character may be split between writes.
type sanitiser struct {
	colours bool   // the command's own styles pass
	json    bool   // escape control characters as \uXXXX, which keeps the JSON equal
	open    []byte // the beginning of a character or a style
}

// shown returns the bytes of the next write that reach the terminal.
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
		case r == '\n' || r == '\t' || !record.ControlsTerminal(r):
			out = utf8.AppendRune(out, r) // an invalid byte becomes U+FFFD: some terminals take it for C1
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

// styleAt returns the length of the command's own style at the beginning of b. more says that b may be cut within one.
func styleAt(b []byte) (n int, more bool) {
	for _, style := range []string{"0", bold, dim, red, yellow, boldRed, boldGreen, boldBlue, purple} {
		code := "\x1b[" + style + "m"
		if bytes.HasPrefix(b, []byte(code)) {
			return len(code), false
		}
		more = more || strings.HasPrefix(code, string(b[:min(len(b), len(code))]))
	}
	return 0, more
}

const (
	maxNameBytes   = 200 // of a part of a name; it leaves room for a number
	maxNameFolders = 8   // in a name
)

// deviceName matches names that mean a device on Windows, with any extension.
var deviceName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)`)

// safeName turns a path from a message into a relative path with slashes, "" if nothing remains. The path does not
// leave its folder, and no part of it is an option, hidden, a device, or looks like another name.
func safeName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/") {
		if part = safePart(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts[max(len(parts)-maxNameFolders-1, 0):], "/")
}

func safePart(part string) string {
	part = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case record.ControlsTerminal(r) || unicode.Is(unicode.Cf, r): // invisible characters make names look alike
			return -1
		}
		return r
	}, part)
	ext := path.Ext(part)
	if stem := strings.TrimSuffix(part, ext); len(part) > maxNameBytes && len(ext) < 20 {
		part = cutText(stem, maxNameBytes-len(ext)) + ext
	}
	part = cutText(part, maxNameBytes)
	part = strings.TrimRightFunc(strings.TrimLeftFunc(part, func(r rune) bool { return r == '-' || r == '.' || unicode.IsSpace(r) }),
		func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	if deviceName.MatchString(part) {
		part = "_" + part
	}
	return part
}

// cutText returns at most n bytes of a text, without splitting a character.
func cutText(s string, n int) string {
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}
