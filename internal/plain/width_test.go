package plain

import "testing"

func TestShortenMiddle(t *testing.T) {
	for _, test := range []struct {
		name string
		n    int
		want string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc…fg"}, {"abcdefgh", 5, "ab…gh"},
		{"日本語の題名", 8, "日本…名"}, {"abc", 1, "…"},
	} {
		if got := ShortenMiddle(test.name, test.n); got != test.want {
			t.Errorf("%q to %d: %q, wanted %q", test.name, test.n, got, test.want)
		}
	}
}

func TestShorten(t *testing.T) {
	tests := []struct {
		text string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"", 0, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"👩‍👩‍👧x", 3, "👩‍👩‍👧x"}, {"👩‍👩‍👧xy", 3, "👩‍👩‍👧…"},
	}
	for _, test := range tests {
		if got := Shorten(test.text, test.n); got != test.want {
			t.Errorf("%q to %d: %q, wanted %q", test.text, test.n, got, test.want)
		}
	}
}
