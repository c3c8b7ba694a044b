package importer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChat(t *testing.T) {
	const user = `{"role":"user","content":"hi"}`
	for name, test := range map[string]struct {
		path, content string
		format        Format
		messages      []int64 // for each conversation
		title         string
		extra         string
		problems      []string
	}{
		"array": {path: "openai/messages.json", format: OpenAI, messages: []int64{5}, title: "May we come in?"},
		"object": {path: "openai/request.json", format: OpenAI, messages: []int64{5}, title: "May we come in?",
			extra: `{"model":"gpt-4o-mini","temperature":0.20}`},
		"objects":       {path: "openai/examples.jsonl", format: OpenAI, messages: []int64{3, 3, 3}},
		"lines":         {path: "jsonl/log.jsonl", format: JSONL, messages: []int64{4}},
		"message lines": {content: user + "\n" + `{"role":"assistant","content":"1.0"}`, format: OpenAI, messages: []int64{2}, title: "hi"},
		"array of conversations": {
			content: `[{"messages":[` + user + `],"id":"1"},` + "\n" + `{"messages":[` + user + `,3],"id":"2"},{"messages":[]},8,{"no":1}]`,
			format:  OpenAI, messages: []int64{1, 1},
			problems: []string{"2 a JSON number, expected an object", "2 a conversation without messages", "2 a JSON number, expected an object",
				"2 not a conversation"},
		},
		"array with a bad element": {content: "[" + user + ",\n1,\n" + user + "]", format: OpenAI, messages: []int64{2}, title: "hi",
			problems: []string{"2 a JSON number, expected an object"}},
		"array cut off": {content: "[\n" + user + ",\n" + user[:9], format: OpenAI, messages: []int64{1}, title: "hi",
			problems: []string{"3 the last value is truncated"}},
		"parts": {content: `[{"role":"user","content":[{"type":"image_url"},{"type":"text","text":" a\n b "}]}]`,
			format: OpenAI, messages: []int64{1}, title: "a b"},
		"one line that is no end": {content: `{"messages":[` + user + `]`, format: OpenAI, problems: []string{"1 truncated JSON value"}},
		"messages twice": {content: `{"messages":[` + user + `],"messages":[],"x":1.0}`, format: OpenAI, messages: []int64{1},
			title: "hi", extra: `{"messages":[],"x":1.0}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(fixtures, test.path)
			if test.content != "" {
				path = fileOf(t, "x.json", test.content)
			}
			s := newFakeStore()
			got := importFile(t, s, path, Options{})
			var messages []int64
			for _, r := range got.results {
				messages = append(messages, r.Messages)
				if r.Format != test.format || r.Added != r.Messages || r.Branches != 1 {
					t.Errorf("%+v", r)
				}
			}
			if d := cmp.Diff(test.messages, messages); d != "" {
				t.Errorf("%s %v", d, got.errs)
			}
			if d := cmp.Diff(test.problems, problemLines(got.problems)); d != "" {
				t.Error(d)
			}
			if len(got.results) == 1 {
				c := s.only(t)
				if c.info.Title != test.title || string(c.info.Extra) != test.extra {
					t.Errorf("title %q, extra %s", c.info.Title, c.info.Extra)
				}
			}
			before := s.dump()
			for _, r := range importFile(t, s, path, Options{}).results {
				if r.Added != 0 {
					t.Errorf("again: %+v", r)
				}
			}
			if s.dump() != before {
				t.Error("importing again changed the store")
			}
		})
	}
}

func TestNumbersStayAsTheyAre(t *testing.T) {
	s := newFakeStore()
	importFile(t, s, filepath.Join(fixtures, "openai/request.json"), Options{})
	if c := s.only(t); !strings.Contains(string(c.info.Extra), "0.20") || !strings.Contains(string(c.all(Main)[3].Body), "0.000003") {
		t.Error("a number was spelled anew")
	}
}

// Conversations that have their instructions in common are different ones; states of one file are not.
func TestOpening(t *testing.T) {
	const system = `{"role":"system","content":"Be kind."}`
	user := func(s string) string { return `{"role":"user","content":"` + s + `"}` }
	s := newFakeStore()
	for _, lines := range []string{
		system + "\n" + user("a"),
		system + "\n" + user("b"),
		system + "\n" + user("b") + "\n" + user("c"),
	} {
		importFile(t, s, fileOf(t, "x.jsonl", lines), Options{})
	}
	if len(s.contexts) != 2 {
		t.Errorf("%d contexts, wanted 2", len(s.contexts))
	}
	s = newFakeStore()
	for _, lines := range []string{`{"session_id":"1","a":1}`, `{"session_id":"1","a":2}`, `{"session_id":"2","a":1}`} {
		importFile(t, s, fileOf(t, "x.jsonl", lines), Options{Format: JSONL})
	}
	if len(s.contexts) != 2 {
		t.Errorf("%d contexts, wanted 2", len(s.contexts))
	}
}
