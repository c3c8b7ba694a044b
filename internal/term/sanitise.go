package term

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/plain"
)

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
		case r == '\n' || r == '\t' || !plain.ControlsTerminal(r):
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
