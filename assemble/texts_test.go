package assemble_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/search"
	"pgregory.net/rapid"
)

// TestPassages checks that passages are short, whole characters, and lose nothing but white space.
func TestPassages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringN(0, 300, -1), 0, 20).Draw(t, "lines")
		between := rapid.SampledFrom([]string{"\n", " ", ""}).Draw(t, "between")
		text := strings.ToValidUTF8(strings.Join(lines, between), "")
		all := assemble.Passages(text)
		for _, p := range all {
			if len(p) > 600 || strings.ToValidUTF8(p, "") != p {
				t.Fatalf("a passage of %d bytes: %q", len(p), p)
			}
		}
		bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if bare(strings.Join(all, "")) != bare(text) {
			t.Fatal("the passages are not the text")
		}
	})
}

// TestAnchor checks that the beginning of a window that slides changes seldom.
func TestAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.Int64Range(2, 500).Draw(t, "width")
		from := rapid.Int64Range(0, 1_000_000).Draw(t, "from")
		changes, last := int64(0), int64(-1)
		for i := range 10 * width {
			is := assemble.Anchor(from+i, from+i+width)
			if is < from+i || is > from+i+width {
				t.Fatalf("%d is outside of %d to %d", is, from+i, from+i+width)
			}
			if is != last {
				changes++
			}
			last = is
		}
		if changes > 45 {
			t.Fatalf("%d changes while it slides by ten times %d", changes, width)
		}
	})
}

// TestPlain checks arguments of calls.
func TestPlain(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"command":"ls -l \"a\""}`: `ls -l "a"`, `{"path":"a.go","lines":[1,2]}`: "path: a.go\nlines: [1,2]", `no json`: `no json`,
		`{"a":1} x`: `{"a":1} x`, `{"a":`: `{"a":`,
	} {
		if is := assemble.Plain(arguments); is != want {
			t.Errorf("%s: %q", arguments, is)
		}
	}
}

// TestDatesIn checks the forms of dates.
func TestDatesIn(t *testing.T) {
	for query, want := range map[string][][3]int{
		"on 2026-05-08": {{2026, 5, 8}}, "8 May, 2023": {{2023, 5, 8}}, "on May 8th": {{0, 5, 8}}, "in july 2023": {{2023, 7, 0}},
		"during October": {{0, 10, 0}}, "in May or 2024": {{0, 5, 0}, {2024, 0, 0}}, "you may march on": nil, "port 54377": nil,
		"8 and 9 June": {{0, 6, 9}},
	} {
		same := func(d search.Date, w [3]int) bool { return d == search.Date{Year: w[0], Month: w[1], Day: w[2]} }
		if is := assemble.DatesIn(query); !slices.EqualFunc(is, want, same) {
			t.Errorf("%q: %v, want %v", query, is, want)
		}
	}
}

// TestEstimate compares the estimate with the vocabulary.
func TestEstimate(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("The quick brown fox jumps over the lazy dog, and then it sleeps for a while. ", 20),
		strings.Repeat("func (b *builder) count(it *Item) int { return b.r.Tokens.Count(text[1:20]) }\n", 20),
		strings.Repeat(`{"position": 12, "id": "0195f0a0-0000-7000-8000-00000000000a", "tokens": 733}`+"\n", 20),
		strings.Repeat("我们修复了锁测试问题，然后提交了。", 20),
	} {
		is, want := assemble.Estimate().Count(text), assemble.O200k().Count(text)
		if is < want*7/10 || is > want*13/10 {
			t.Errorf("%d tokens, estimated %d: %.40s", want, is, text)
		}
	}
}
