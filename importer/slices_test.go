package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSlices: a session that goes on in another file continues the branch whose end its first parent is, and forks
// where the first parent is within a branch.
func TestSlices(t *testing.T) {
	first := sliceOf("prompt u1 - a", "reply u2 u1 m1", "prompt u3 u2 b", "reply u4 u3 m2")
	second := sliceOf("prompt u5 u4 c", "reply u6 u5 m3")
	fork := sliceOf("prompt u7 u2 d", "reply u8 u7 m4")
	afterFork := sliceOf("prompt u9 u8 e")
	s := newFakeStore()
	for range 2 {
		for _, content := range []string{first, second, fork, afterFork} {
			importFile(t, s, fileOf(t, "slice.jsonl", content), Options{})
		}
		c := s.only(t)
		want := []string{"main@0+6", "resume@2+3"}
		if d := cmp.Diff(want, outline(c)); d != "" {
			t.Fatal(d, s.dump())
		}
		if c.active != "resume" {
			t.Errorf("active %q", c.active)
		}
	}
}

// sliceOf makes several lines of a transcript.
func sliceOf(specs ...string) string {
	var b strings.Builder
	for _, s := range specs {
		b.WriteString(line(s) + "\n")
	}
	return b.String()
}

// TestOlderSlice: an older slice that is imported later does not become the active branch.
func TestOlderSlice(t *testing.T) {
	at := func(spec, time string) string {
		return strings.Replace(line(spec), "{", `{"timestamp":"2026-01-0`+time+`T00:00:00Z",`, 1) + "\n"
	}
	s := newFakeStore()
	importFile(t, s, fileOf(t, "late.jsonl", at("prompt u5 gone c", "3")+at("reply u6 u5 m3", "4")), Options{})
	importFile(t, s, fileOf(t, "early.jsonl", at("prompt u1 - a", "1")+at("reply u2 u1 m1", "2")), Options{})
	if c := s.only(t); c.active != Main || len(c.order) != 2 || c.all(Main)[0].OriginID != "u5" {
		t.Errorf("active %q of %v", c.active, outline(c))
	}
}
