package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawTranscript makes lines that link to each other in every way that is wrong, and some that are right.
func drawTranscript(t *rapid.T) string {
	var b strings.Builder
	ids := []string{"-", "gone"}
	for i := range rapid.IntRange(1, 25).Draw(t, "lines") {
		id := fmt.Sprintf("u%d", i)
		if rapid.IntRange(0, 9).Draw(t, "repeat") == 0 {
			id = rapid.SampledFrom(ids).Draw(t, "repeated")
		}
		parent := ids[len(ids)-1]
		if rapid.IntRange(0, 2).Draw(t, "elsewhere") == 0 {
			parent = rapid.SampledFrom(ids).Draw(t, "parent")
		}
		ids = append(ids, id)
		words := fmt.Sprintf("w%d", rapid.IntRange(0, 3).Draw(t, "words"))
		message := fmt.Sprintf("m%d", rapid.IntRange(0, 3).Draw(t, "message"))
		var more []string
		if rapid.IntRange(0, 3).Draw(t, "side") == 0 {
			more = append(more, side)
			if rapid.Bool().Draw(t, "agent") {
				more = append(more, fmt.Sprintf(`"agentId":"g%d"`, rapid.IntRange(0, 2).Draw(t, "agent id")))
			}
			if rapid.IntRange(0, 3).Draw(t, "spawned") == 0 {
				more = append(more, fmt.Sprintf(`"parentToolUseID":"t%s"`, words))
			}
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			b.WriteString(line(fmt.Sprintf("prompt %s %s %s", id, parent, words), more...))
		case 3, 4, 5:
			b.WriteString(line(fmt.Sprintf("reply %s %s %s", id, parent, message), more...))
		case 6:
			b.WriteString(line(fmt.Sprintf("task %s %s %s t%s %s", id, parent, message, words, words), more...))
		case 7:
			b.WriteString(line(fmt.Sprintf("result %s %s", id, parent), more...))
		case 8:
			b.WriteString(line(fmt.Sprintf("progress %s %s", id, parent), more...))
		case 9:
			others := []string{"42", "noise", "\x00\x00", `{"type":"summary","leafUuid":"u1"}`, `{"cut":"`, "[{}]"}
			b.WriteString(rapid.SampledFrom(others).Draw(t, "other"))
		}
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\n", "\r\n", "", "\x00"}).Draw(t, "end"))
	}
	return strings.ReplaceAll(b.String(), `"sessionId":"s"`, `"sessionId":"`+drawnSession+`"`)
}

const drawnSession = "0192f3c4-0000-7000-8000-000000000000"

// scratch is a file that is written anew: rapid calls a property many times.
type scratch string

func newScratch(t *testing.T) scratch {
	// The name of a session's file is its session's, so that states without one are of the same.
	return scratch(filepath.Join(t.TempDir(), drawnSession+".jsonl"))
}

func (s scratch) holding(t *rapid.T, content string) string {
	if err := os.WriteFile(string(s), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return string(s)
}

// importInto imports and gives the number of records found.
func importInto(t *rapid.T, s *fakeStore, path string) (records int64) {
	for r, err := range Import(t.Context(), s, path, Options{Format: ClaudeCode}) {
		if err != nil && !errors.Is(err, ErrEmpty) && !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		records = r.Messages
	}
	return records
}

// Importing any earlier state of a file, then the file, gives what importing the file alone gives.
func TestAnyStateThenTheWhole(t *testing.T) {
	defer func(r int) { batchRecords = r }(batchRecords)
	batchRecords = 5
	file := newScratch(t)
	rapid.Check(t, func(t *rapid.T) {
		whole := drawTranscript(t)
		alone, both := newFakeStore(), newFakeStore()
		importInto(t, alone, file.holding(t, whole))
		both.chunk = rapid.IntRange(1, 7).Draw(t, "chunk")
		for range rapid.IntRange(1, 3).Draw(t, "states") {
			cut := rapid.IntRange(0, len(whole)).Draw(t, "cut")
			importInto(t, both, file.holding(t, whole[:cut]))
		}
		importInto(t, both, file.holding(t, whole))
		if d := cmp.Diff(alone.dump(), both.dump()); d != "" {
			t.Fatalf("%s\n%s", whole, d)
		}
		// And once more: nothing changes.
		importInto(t, both, file.holding(t, whole))
		if d := cmp.Diff(alone.dump(), both.dump()); d != "" {
			t.Fatalf("again: %s", d)
		}
	})
}

// An import that breaks off anywhere is completed by the next one.
func TestBrokenOff(t *testing.T) {
	defer func(r int) { batchRecords = r }(batchRecords)
	batchRecords = 3
	file := newScratch(t)
	rapid.Check(t, func(t *rapid.T) {
		path := file.holding(t, drawTranscript(t))
		alone, both := newFakeStore(), newFakeStore()
		importInto(t, alone, path)
		both.fail = rapid.IntRange(1, 12).Draw(t, "fail")
		importInto(t, both, path)
		both.fail = 0
		importInto(t, both, path)
		if d := cmp.Diff(alone.dump(), both.dump()); d != "" {
			t.Fatal(d)
		}
	})
}

// Whatever two files of one session hold: each is shown whole, and importing them again changes nothing.
func TestTwoHistoriesOfOneSession(t *testing.T) {
	file := newScratch(t)
	rapid.Check(t, func(t *rapid.T) {
		one := drawTranscript(t)
		two := redraw(t, one)
		s, alone := newFakeStore(), newFakeStore()
		n := importInto(t, s, file.holding(t, one))
		importInto(t, alone, file.holding(t, two))
		m := importInto(t, s, file.holding(t, two))
		for id, c := range alone.contexts {
			for _, name := range c.order {
				if !shownBy(s.contexts[id], c.all(name)) {
					t.Fatalf("%s\nthen\n%s\nno branch shows what %s of the latter is\n%s", one, two, name, s.dump())
				}
			}
		}
		before := s.dump()
		again := importInto(t, s, file.holding(t, one))
		twice := importInto(t, s, file.holding(t, two))
		if d := cmp.Diff(branchesOf(before), branchesOf(s.dump())); d != "" || n != again || m != twice {
			t.Fatalf("%d %d %d %d %s", n, again, m, twice, d)
		}
	})
}

// redraw is another history that has lines of a first one, at their place or not.
func redraw(t *rapid.T, one string) string {
	lines := strings.SplitAfter(one, "\n")
	others := strings.SplitAfter(drawTranscript(t), "\n")
	keep := rapid.IntRange(0, len(lines)).Draw(t, "keep")
	out := slices.Clone(lines[:keep])
	for range rapid.IntRange(0, 12).Draw(t, "more") {
		from := rapid.SampledFrom([][]string{lines, others}).Draw(t, "from")
		i := rapid.IntRange(0, len(from)).Draw(t, "line")
		out = append(out, from[i:min(len(from), i+rapid.IntRange(1, 4).Draw(t, "run"))]...)
	}
	return strings.Join(out, "")
}

// shownBy says whether a branch shows these messages in a row: from its beginning, or behind those that they follow.
func shownBy(c *fakeContext, want []Record) bool {
	return slices.ContainsFunc(c.order, func(name string) bool {
		have := c.all(name)
		for at := range max(len(have)-len(want)+1, 0) {
			if slices.EqualFunc(want, have[at:at+len(want)], func(a, b Record) bool { return string(a.Body) == string(b.Body) }) {
				return true
			}
		}
		return false
	})
}

// branchesOf is a dump without what importing an old file may change.
func branchesOf(dump string) string {
	var out []string
	for _, l := range strings.Split(dump, "\n") {
		if !strings.HasPrefix(l, "active ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}
