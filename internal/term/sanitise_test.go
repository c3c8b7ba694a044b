package term

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkShown fails if control characters reached a terminal, except styles.
func checkShown(t *testing.T, what, got string) {
	t.Helper()
	for len(got) > 0 {
		if n, _ := styleAt([]byte(got)); n > 0 {
			got = got[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(got)
		if r == utf8.RuneError && size == 1 ||
			r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			t.Errorf("%s: %q is shown, before %.40q", what, r, got[size:])
			return
		}
		got = got[size:]
	}
}

// TestSanitiser: however the output is split, only styles control the terminal, and the text stays the same.
func TestSanitiser(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{
			"a",
			"é",
			"😀",
			"\n",
			"\t",
			"\x1b",
			"\x1b[1m",
			"\x1b[0m",
			"\x1b[8m",
			"\x1b[2J",
			"\x9b",
			"\u009b",
			"\u202e",
			"\u200d",
			"\u2028",
			"\xff",
			"\xf0\x9f",
			"\xe2\x80",
		})).Draw(r, "pieces")
		s := Sanitiser{Colours: rapid.Bool().Draw(r, "colours"), JSON: rapid.Bool().Draw(r, "json")}
		whole := strings.Join(pieces, "")
		at := s
		want := string(at.Shown([]byte(whole)))
		got := ""
		for len(whole) > 0 {
			n := rapid.IntRange(1, len(whole)).Draw(r, "bytes")
			got, whole = got+string(s.Shown([]byte(whole[:n]))), whole[n:]
		}
		if got != want {
			r.Fatalf("%q in pieces, %q at once", got, want)
		}
		checkShown(t, "shown", got)
		if (!s.Colours || s.JSON) && strings.Contains(got, "\x1b") {
			r.Fatalf("%q", got)
		}
	})
}
