package blob

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func mentionsIn(t *testing.T, b []byte) []Sum {
	t.Helper()
	var found []Sum
	for sum, err := range MentionsIn(iotest.HalfReader(bytes.NewReader(b))) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, sum)
	}
	if whole := slices.Collect(Mentions(b)); !slices.Equal(whole, found) {
		t.Errorf("in one piece %v, in several %v", whole, found)
	}
	return found
}

// escaped spells every character of a text as \u00XX.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range text {
		fmt.Fprintf(&b, `\u%04X`, c)
	}
	return b.String()
}

// TestMentions: a reference is found however it is spelled and wherever it lies in a stream, also where what is around
// it is damaged; what a framework wrote, and what stands inside a text, is none.
func TestMentions(t *testing.T) {
	sum := SumOf([]byte("x"))
	name := sum.String()
	for _, spelled := range []string{
		`{"$blob":"SUM","size":1}`, `{"\u0024blob" : "SUM"}`, "{\n  \"$blob\":\n\t\"SUM\"}",
		"{\"$blob\"" + strings.Repeat(" \n", 500) + ":\r\n\"SUM\"}",
		`{"size":1,"encoding":"base64","$blob":"SUM"}`, `{"` + escaped("$blob") + `":"` + escaped(name) + `"}`, `{"$\u0062lob":"SUM"}`,
		`torn","size":1}{"$blob":"SUM`, "\x00\xff\\\"$blob\": \"\\{{{[\"$blob\":\"SUM", `"$blob"$blob":"$blob":"SUM"`, `\u00"$blob":"SUM"`,
	} {
		ref := []byte(strings.ReplaceAll(spelled, "SUM", name))
		for _, before := range []int{0, 1, mentionPiece - len(ref), mentionPiece - len(ref)/2, mentionPiece - 1, mentionPiece,
			2*mentionPiece - 50, 2*mentionPiece + 7} {
			b := slices.Concat(bytes.Repeat([]byte("x"), max(before, 0)), ref, bytes.Repeat([]byte("\n"), 1000))
			if found := mentionsIn(t, b); !slices.Equal(found, []Sum{sum}) {
				t.Fatalf("%s behind %d bytes: %v", spelled, before, found)
			}
		}
	}
	for _, other := range []string{
		`{"$$blob":"SUM"}`, `{"blob":"SUM","text":"x"}`, `{"text":"{\"$blob\":\"SUM\"}"}`,
		`{"text":"{\\u0024blob\": \"SUM\"}"}`, `{"sha256":"SUM"}`,
		`{"$blob":"` + name[:63] + `"}`, `{"$blob":"` + strings.ToUpper(name) + `"}`, `{"$blob":["SUM"]}`, `{"$blobs":"SUM"}`,
	} {
		if found := mentionsIn(t, []byte(strings.ReplaceAll(other, "SUM", name))); len(found) > 0 {
			t.Errorf("%s: %v", other, found)
		}
	}
}

// TestMentionsAllRefs: whatever Refs finds, Mentions finds.
func TestMentionsAllRefs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.StringOfN(rapid.RuneFrom([]rune(" \t\r\n")), 0, 3, -1)
		spell := func(text string) string {
			var b strings.Builder
			for _, c := range text {
				if rapid.Bool().Draw(t, "escaped") {
					b.WriteString(escaped(string(c)))
				} else {
					b.WriteRune(c)
				}
			}
			return `"` + b.String() + `"`
		}
		var b strings.Builder
		var want []Sum
		b.WriteString("[")
		for i := range rapid.IntRange(0, 4).Draw(t, "references") {
			if i > 0 {
				b.WriteString(",")
			}
			sum := SumOf(fmt.Append(nil, i))
			want = append(want, sum)
			fmt.Fprintf(
				&b,
				"%s{%s%s%s:%s%s,%s:1}",
				space.Draw(t, "space"),
				space.Draw(t, "space"),
				spell("$blob"),
				space.Draw(t, "space"),
				space.Draw(t, "space"),
				spell(sum.String()),
				spell("size"),
			)
			b.WriteString(
				`,"` + rapid.StringMatching(
					`[$blob:\\"a ]{0,9}`,
				).Filter(
					func(s string) bool { return !strings.ContainsAny(s, `"\`) },
				).Draw(
					t,
					"text",
				) + `"`,
			)
		}
		b.WriteString("]")
		refs, err := Refs([]byte(b.String()))
		if err != nil || len(refs) != len(want) {
			t.Fatalf("%d references, %v: %s", len(refs), err, b.String())
		}
		if found := slices.Collect(Mentions([]byte(b.String()))); !slices.Equal(found, want) || Count([]byte(b.String())) != len(want) {
			t.Errorf("%v, wanted %v: %s", found, want, b.String())
		}
	})
}

// TestMentionsFailing: an error of reading ends it, and is told.
func TestMentionsFailing(t *testing.T) {
	failed := errors.New("failed")
	var got error
	for _, err := range MentionsIn(iotest.ErrReader(failed)) {
		got = err
	}
	if !errors.Is(got, failed) {
		t.Errorf("%v", got)
	}
}
