package importer

import (
	"strings"
	"testing"
)

// TestLaterStates: a later state of a document replaces what the earlier one said, and an earlier one replaces nothing.
func TestLaterStates(t *testing.T) {
	const early = `{"sessionId":"s","projectHash":"p","lastUpdated":"2026-01-01T00:00:00Z","messages":[
		{"id":"a","type":"user","content":"First"},{"id":"b","type":"gemini","content":"Draft"}]}`
	const late = `{"sessionId":"s","projectHash":"p","lastUpdated":"2026-01-02T00:00:00Z","summary":"Named","messages":[
		{"id":"a","type":"user","content":"First"},{"id":"b","type":"gemini","content":"Final"},{"id":"c","type":"user","content":"Thanks"}]}`
	s := newFakeStore()
	importFile(t, s, fileOf(t, "x.json", early), Options{})
	r := importFile(t, s, fileOf(t, "x.json", late), Options{}).results[0]
	if r.Added != 1 || r.Skipped != 2 || r.Replaced != 1 || r.Branches != 1 {
		t.Errorf("the later state: %+v", r)
	}
	want := s.dump()
	if !strings.Contains(want, "Final") || strings.Contains(want, "Draft") || s.only(t).info.Title != "Named" {
		t.Errorf("the later state is\n%s", want)
	}
	r = importFile(t, s, fileOf(t, "x.json", early), Options{}).results[0]
	if r.Added != 0 || r.Replaced != 0 || s.dump() != want {
		t.Errorf("the earlier state: %+v\n%s", r, s.dump())
	}
}

// TestLaterStateWithoutIDs: where messages have no ids, a changed one begins a branch, which becomes the active one, and
// the members beside the messages are renewed.
func TestLaterStateWithoutIDs(t *testing.T) {
	state := func(answer, cost string) string {
		return `{"id":"dump","messages":[{"role":"user","content":"Ask"},{"role":"assistant","content":"` + answer + `"}],"cost":` + cost + `}`
	}
	s := newFakeStore()
	importFile(t, s, fileOf(t, "x.json", state("One", "1.0")), Options{})
	r := importFile(t, s, fileOf(t, "x.json", state("Two", "2.0")), Options{}).results[0]
	c := s.only(t)
	if r.Added != 1 || r.Branches != 2 || c.active == Main || !strings.Contains(string(c.info.Extra), `"cost":2.0`) {
		t.Errorf("%+v, active %s of %v, beside %s", r, c.active, outline(c), c.info.Extra)
	}
}

// TestTwoForms: OpenAssistant publishes each message with and without the members that are null. Neither form is later.
func TestTwoForms(t *testing.T) {
	form := func(text, more string) string {
		return `{"message_id":"a0000000-0000-4000-8000-000000000430","parent_id":null,"text":"` + text + `","role":"prompter"` + more +
			`,"replies":[]}` + "\n"
	}
	s := newFakeStore()
	replaced := func(text, more string) int64 {
		t.Helper()
		got := importFile(t, s, fileOf(t, "x.jsonl", form(text, more)), Options{})
		if len(got.errs) > 0 || len(got.results) != 1 || got.results[0].Added > 0 && len(s.contexts) != 1 {
			t.Fatalf("%+v", got)
		}
		return got.results[0].Replaced
	}
	replaced("Who is the queen?", "")
	for _, more := range []string{`,"rank":null,"labels":null`, "", `,"emojis":null`} {
		if n := replaced("Who is the queen?", more); n != 0 {
			t.Errorf("with %q: %d replaced", more, n)
		}
	}
	for _, state := range [][2]string{{"Who is the queen?", `,"rank":1`}, {"Who is the queen?", ""}, {"Who was the queen?", ""}} {
		if n := replaced(state[0], state[1]); n != 1 {
			t.Errorf("%q: %d replaced", state, n)
		}
	}
}
