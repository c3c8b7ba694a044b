package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTools reads tool calls and results as the tools write them.
func TestTools(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []Part
	}{
		"Claude Code, a result": {
			`{"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no"}]}}`,
			[]Part{{Kind: Result, ID: "t1", Text: "no", Failed: true}},
		},
		"Codex, a call": {
			`{"type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}`,
			[]Part{{Kind: Call, Name: "exec", ID: "c1", Text: `{"cmd":"ls"}`}},
		},
		"Codex, a patch": {
			`{"payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c1"}}`,
			[]Part{{Kind: Call, Name: "apply_patch", ID: "c1", Text: "*** Begin Patch"}},
		},
		"Codex, a result": {
			`{"payload":{"type":"function_call_output","call_id":"c1","output":"done"}}`, []Part{{Kind: Result, ID: "c1", Text: "done"}},
		},
		"Codex, a search": {
			`{"payload":{"type":"web_search_call","action":{"query":"q"}}}`, []Part{{Kind: Call, Name: "web_search", Text: `{"query":"q"}`}},
		},
		"Codex, a thought": {
			`{"payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}`, []Part{{Kind: Thought, Text: "hm"}},
		},
		"Codex, an encrypted thought": {`{"payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}`, nil},
		"opencode, a call with its result": {
			`{"parts":[{"type":"step-start"},` +
				`{"type":"tool","tool":"bash","callID":"c","state":{"status":"error","input":{"command":"x"},"error":"no"}}]}`,
			[]Part{{
				Kind: Call, Name: "bash", ID: "c", Text: `{"command":"x"}`, Results: []Part{{Kind: Result, ID: "c", Text: "no", Failed: true}},
			}},
		},
		"pi, a call": {
			`{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a"}}]}}`,
			[]Part{{Kind: Call, Name: "read", ID: "c", Text: `{"path":"a"}`}},
		},
		"pi, a result": {
			`{"message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"x"}]}}`,
			[]Part{{Kind: Result, ID: "c", Name: "read", Text: "x"}},
		},
		"pi, a command of the user": {
			`{"message":{"role":"bashExecution","command":"ls","output":"a"}}`,
			[]Part{{Kind: Call, Name: "bash", Text: `"ls"`, Results: []Part{{Kind: Result, Text: "a"}}}},
		},
	} {
		if diff := cmp.Diff(c.want, Parts(json.RawMessage(c.body))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestBookkeeping: only records that agent tools are known to write for themselves are bookkeeping.
func TestBookkeeping(t *testing.T) {
	for body, want := range map[string]bool{
		`{"type":"progress","sessionId":"s"}`:                            true,
		`{"type":"progress"}`:                                            false,
		`{"type":"summary","summary":"x","leafUuid":"u"}`:                true,
		`{"type":"summary","summary":"x"}`:                               false,
		`{"type":"system","subtype":"turn_duration","sessionId":"s"}`:    true,
		`{"type":"system","subtype":"compact_boundary","sessionId":"s"}`: false,
		`{"type":"user","isMeta":true,"sessionId":"s"}`:                  true,
		`{"type":"user","isMeta":false,"sessionId":"s"}`:                 false,
		`{"type":"event_msg","payload":{}}`:                              true,
		`{"type":"response_item","payload":{"type":"message"}}`:          false,
		`{"type":"model_change","timestamp":"2026-01-02T03:04:05Z"}`:     true,
		`{"type":"message","timestamp":"2026-01-02T03:04:05Z"}`:          false,
		`{"id":"n","message":null,"parent":null,"children":[]}`:          true,
		`{"sessionId":"s","projectHash":"h","startTime":"t"}`:            false,
		`{"role":"user","content":"progress"}`:                           false,
		`"text"`:                                                         false,
		``:                                                               false,
	} {
		if got := Bookkeeping(json.RawMessage(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// drawn shows turns as a text: the message, its voice if it has a head, its calls with results in brackets.
func drawn(t *testing.T, messages ...string) string {
	t.Helper()
	var b strings.Builder
	turns := Turns[int]{Show: func(turn *Turn[int]) error {
		if !turn.Continues {
			b.WriteString(turn.Voice + " ")
		}
		fmt.Fprint(&b, turn.Message)
		for _, p := range turn.Parts {
			if p.Kind == Call {
				fmt.Fprintf(&b, "[%s]", Join(p.Results))
			}
		}
		b.WriteString("; ")
		return nil
	}}
	for i, m := range messages {
		parts := Parts(json.RawMessage(m))
		if err := turns.Add(i, VoiceOf(ObjectOf(json.RawMessage(m)).RoleOf(), parts), parts, len(m)); err != nil {
			t.Fatal(err)
		}
	}
	if err := turns.Flush(); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// TestTurns: results join their calls, whatever comes between, and the order of the messages stays.
func TestTurns(t *testing.T) {
	ask, say := `{"role":"user","content":"q"}`, `{"role":"assistant","content":"a"}`
	call := func(id string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"f","input":{}}]}`
	}
	result := func(id string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"r` + id + `"}]}`
	}
	many := []string{call("1")}
	for range maxTurns + 1 {
		many = append(many, ask)
	}
	for name, c := range map[string]struct {
		messages []string
		want     string
	}{
		"a call and its result":     {[]string{ask, call("1"), result("1"), say}, "user 0; assistant 1[r1]; assistant 3"},
		"calls beside each other":   {[]string{call("1"), call("2"), result("2"), result("1")}, "assistant 0[r1]; 1[r2]"},
		"a message in between":      {[]string{call("1"), say, result("1")}, "assistant 0[r1]; assistant 1"},
		"no result":                 {[]string{call("1"), say}, "assistant 0[]; assistant 1"},
		"a result without its call": {[]string{result("1"), say}, "user 0; assistant 1"},
		"a result twice":            {[]string{call("1"), result("1"), result("1")}, "assistant 0[r1]; user 2"},
		"an id once more":           {[]string{call("1"), ask, call("1"), result("1")}, "assistant 0[]; user 1; assistant 2[r1]"},
		"a result that never comes": {many, "assistant 0[]; " + manyUsers(maxTurns+1)},
	} {
		if got := drawn(t, c.messages...); got != c.want {
			t.Errorf("%s: %s, wanted %s", name, got, c.want)
		}
	}
}

func manyUsers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("user %d", i+1))
	}
	return strings.Join(all, "; ")
}

// TestDiff: a call that changes a file shows the lines that change, with those around them.
func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		arguments, summary string
		want               []string
	}{
		"an edit": {`{"file_path":"/a","old_string":"1\n2\n3","new_string":"1\n2b\n3"}`, "/a", []string{" 1", "-2", "+2b", " 3"}},
		"several edits": {
			`{"filePath":"a","edits":[{"oldText":"1","newText":"2"},{"oldText":"","newText":"3"}]}`, "a", []string{"-1", "+2", "+3"},
		},
		"a new file": {`{"path":"a","content":"1\n2\n"}`, "a", []string{"+1", "+2"}},
		"a patch": {
			"*** Begin Patch\n*** Update File: a.go\n-1\n+2\n*** End Patch", "a.go",
			[]string{"*** Begin Patch", "*** Update File: a.go", "-1", "+2", "*** End Patch"},
		},
		"a command":   {`{"cmd":["ls","-l"]}`, "ls -l", nil},
		"no object":   {`ls`, "ls", nil},
		"other words": {`{"x":1}`, `{"x":1}`, nil},
	} {
		p := Part{Kind: Call, Text: c.arguments}
		if diff := cmp.Diff(c.want, p.Diff()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if got := p.Edits(); got != (c.want != nil) {
			t.Errorf("%s: edits %v", name, got)
		}
		if got := p.Summary(); got != c.summary {
			t.Errorf("%s: summary %q", name, got)
		}
	}
	if got := Changed([]string{" a", "+b", "-c", "+d"}); got != "+2 −1" {
		t.Errorf("Changed: %s", got)
	}
}

// TestRecords reads records that hold calls and results in a form of their own.
func TestRecords(t *testing.T) {
	call := func(name, id, text string, results ...Part) Part {
		return Part{Kind: Call, Name: name, ID: id, Text: text, Results: results}
	}
	for name, c := range map[string]struct {
		body string
		want []Part
	}{
		"opencode": {
			`{"info":{"role":"assistant"},"parts":[{"type":"text","text":"a"},{"type":"reasoning","text":"b"},{"type":"snapshot"}]}`,
			[]Part{{Text: "a"}, {Kind: Thought, Text: "b"}},
		},
		"Gemini": {
			`{"type":"gemini","content":"a","thoughts":[{"subject":"s","description":"d"}],` +
				`"toolCalls":[{"id":"c","name":"f","args":{},"status":"error","resultDisplay":"r"}]}`,
			[]Part{{Kind: Thought, Text: "s\nd"}, {Text: "a"}, call("f", "c", "{}", Part{Kind: Result, ID: "c", Text: "r", Failed: true})},
		},
		"Copilot, a call": {
			`{"type":"assistant.message","data":{"toolRequests":[{"name":"f","toolCallId":"c","arguments":{}}]}}`,
			[]Part{call("f", "c", "{}")},
		},
		"Copilot, a result": {
			`{"type":"tool.execution_complete","data":{"toolCallId":"c","result":{"content":"r"}}}`,
			[]Part{{Kind: Result, ID: "c", Text: "r"}},
		},
		"OpenHands, a call": {
			`{"id":4,"source":"agent","action":"run","args":{"command":"ls","thought":"t"}}`,
			[]Part{{Text: "t"}, call("run", "4", `{"command":"ls","thought":"t"}`)},
		},
		"OpenHands, a result": {
			`{"id":5,"source":"agent","cause":4,"observation":"run","content":"r"}`, []Part{{Kind: Result, ID: "4", Name: "run", Text: "r"}},
		},
		"ChatGPT, a call": {
			`{"id":"n","parent":"p","message":{"author":{"role":"assistant"},"recipient":"python","content":{"content_type":"code","text":"1+1"}}}`,
			[]Part{call("python", "n", "1+1")},
		},
		"ChatGPT, a result": {
			`{"id":"m","parent":"n","message":{"author":{"role":"tool","name":"python"},"recipient":"all",` +
				`"content":{"content_type":"execution_output","text":"2"}}}`,
			[]Part{{Kind: Result, ID: "n", Name: "python", Text: "2"}},
		},
		"ChatGPT, an answer": {
			`{"id":"m","parent":"n","message":{"author":{"role":"assistant"},"recipient":"all","content":{"content_type":"text","parts":["a"]}}}`,
			[]Part{{Text: "a"}},
		},
		"Codex, a compaction": {`{"type":"compacted","payload":{"message":"m"}}`, []Part{{Text: "m"}}},
	} {
		if diff := cmp.Diff(c.want, Parts(json.RawMessage(c.body))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
