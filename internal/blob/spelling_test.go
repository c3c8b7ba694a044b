package blob

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestPlain: the search by eight bytes finds the first byte that needs an escape, as a search by bytes does.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := spelling(rapid.IntRange(0, 31).Draw(r, "spelling"))
		special := rapid.SampledFrom([]string{
			"a", " ", "\"", "\\", "/", "<", ">", "&", "\x1f", "\x00", "\x7f", "!", "é", "—", "\u2028", "\u2029", "\u202a", "😀", "\xe2",
		})
		var text []byte
		for range rapid.IntRange(0, 4).Draw(r, "parts") {
			text = append(text, bytes.Repeat([]byte("x"), rapid.IntRange(0, 20).Draw(r, "run"))...)
			text = append(text, special.Draw(r, "special")...)
		}
		want := 0
		for want < len(text) && !needsEscape(s, text[want:]) {
			want++
		}
		if got := s.plain(text); got != want {
			r.Fatalf("spelling %q: %d instead of %d in %q", s, got, want, text)
		}
		if n, b := s.size(text), s.spell(nil, text); n != int64(len(b)) {
			r.Fatalf("spelling %q: %d bytes counted for %q", s, n, b)
		}
	})
}

// needsEscape states the rules of FORMAT.md for the first character of a text.
func needsEscape(s spelling, text []byte) bool {
	switch c := text[0]; {
	case c < ' ', c == '"', c == '\\':
		return true
	case bytes.HasPrefix(text, []byte("\u2028")), bytes.HasPrefix(text, []byte("\u2029")):
		return s&(spelledLines|spelledASCII) != 0
	case c == '/':
		return s&spelledSlash != 0
	case bytes.IndexByte([]byte("<>&"), c) >= 0:
		return s&spelledHTML != 0
	}
	return text[0] >= 0x7f && s&spelledASCII != 0
}

// TestMayRefer: whatever a message has to restore, MayRefer and MayEscape find, however the framework spelled it.
func TestMayRefer(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := ""
		for _, c := range "$$blob"[rapid.IntRange(0, 1).Draw(r, "dollars"):] {
			name += rapid.SampledFrom([]string{string(c), fmt.Sprintf(`\u%04x`, c), fmt.Sprintf(`\u%04X`, c)}).Draw(r, "spelled")
		}
		before := rapid.SampledFrom([]string{"", `"5$",`, `"x4",`, `"\\u002",`}).Draw(r, "before")
		body := []byte(`{"a":[` + before + `{"` + name + `":"x"}]}`)
		stored, _, err := Externalise(body, Policy{-1}, nil)
		if err != nil || bytes.Equal(stored, body) || !MayRefer(stored) || !MayEscape(stored) {
			r.Fatalf("%s is stored as %s, %v", body, stored, err)
		}
		if !MayRefer(body) { // as another program may spell a reference
			r.Fatalf("%s may refer", body)
		}
	})
}
