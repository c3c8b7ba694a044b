package outline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/outline"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	calls := func(kind transcript.ToolKind) (c outline.Calls) {
		c[kind] = 1
		return c
	}
	long := strings.Repeat("é ", 400)
	for name, c := range map[string]struct {
		role, body string
		want       outline.Note
	}{
		"a prompt": {"user", `{"role":"user","content":"  Mend\n\tthe lock, "}`, outline.Note{Marks: outline.Prompt, Text: "Mend the lock,"}},
		"an image alone": {"user", `{"role":"user","content":[{"type":"image",` +
			`"source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`,
			outline.Note{Marks: outline.Prompt}},
		"a reminder": {"user", `{"role":"user","content":"<system-reminder>Be brief.</system-reminder>"}`, outline.Note{}},
		"a command as typed": {"user", `{"role":"user","content":"<command-name>/review</command-name><command-args>the parser</command-args>"}`,
			outline.Note{Marks: outline.Prompt, Text: "/review the parser"}},
		"an answer": {"assistant", `{"role":"assistant","content":"Done."}`, outline.Note{Marks: outline.Reply, Text: "Done."}},
		"a long answer": {"assistant", `{"role":"assistant","content":"` + long + `"}`,
			outline.Note{Marks: outline.Reply, Text: strings.Repeat("é ", 66) + "é…"}},
		"a thought": {"assistant", `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm."}]}`, outline.Note{Marks: outline.Reply}},
		"a call": {"assistant", `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"make"}}]}`,
			outline.Note{Marks: outline.Reply | outline.Call, Calls: calls(transcript.ShellTool)}},
		"an edit": {"assistant", `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Edit",` +
			`"input":{"file_path":"a.go","old_string":"a\nb","new_string":"a\nc\nd"}}]}`,
			outline.Note{Marks: outline.Reply | outline.Call | outline.Edit, Calls: calls(transcript.EditTool), Added: 2, Removed: 1}},
		"a patch": {"", `{"type":"custom_tool_call","name":"apply_patch","call_id":"1",` +
			`"input":"*** Begin Patch\n*** Update File: a.go\n@@\n-a\n+b\n+c\n*** End Patch"}`,
			outline.Note{Marks: outline.Reply | outline.Call | outline.Edit, Calls: calls(transcript.EditTool), Added: 2, Removed: 1}},
		"an editor that shows a file": {"assistant", `{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"str_replace_editor",` +
			`"arguments":"{\"command\":\"view\",\"path\":\"a.go\"}"}}]}`,
			outline.Note{Marks: outline.Reply | outline.Call, Calls: calls(transcript.ReadTool)}},
		"a failure": {"user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"no"},` +
			`{"type":"text","text":"Go on."}]}`, outline.Note{Marks: outline.Failure, Failed: 1}},
		"a summary": {"user", `{"type":"user","sessionId":"1","isCompactSummary":true,"message":{"role":"user","content":"It went on."}}`,
			outline.Note{Marks: outline.Break}},
		"a boundary": {"system", `{"type":"system","subtype":"compact_boundary","sessionId":"1","content":"Conversation compacted"}`,
			outline.Note{Marks: outline.Break}},
		"a mirror":  {"mirror", `{"role":"user","content":"Mend the lock"}`, outline.Note{}},
		"settings":  {"", `{"type":"summary","leafUuid":"1","summary":"Locks"}`, outline.Note{}},
		"no object": {"user", `[1]`, outline.Note{}},
	} {
		body := json.RawMessage(c.body)
		if d := cmp.Diff(c.want, outline.Of(c.role, body, transcript.Parts(body))); d != "" {
			t.Errorf("%s (-want +got): %s", name, d)
		}
	}
}

// TestTurn sums up the notes of a turn.
func TestTurn(t *testing.T) {
	b := outline.NewBranch(4)
	b.Add(0, outline.Strip{0b0110, 0b1000}, 0, 4)
	turn := outline.NewTurn(b, 1)
	for _, n := range []outline.Note{
		{Marks: outline.Prompt, Text: "Mend it"}, {Marks: outline.Prompt, Text: "please"},
		{
			Marks: outline.Reply | outline.Call | outline.Edit | outline.Failure, Failed: 1, Added: 3, Removed: 2, Text: "Done.",
			Calls: outline.Calls{1},
		},
		{Marks: outline.Break},
	} {
		turn.Add(&n)
	}
	want := outline.Turn{
		Number: 1, From: 1, To: 4, Prompt: "Mend it", Answer: "Done.", Prompts: 2, Calls: outline.Calls{1}, Failed: 1, Added: 3, Removed: 2,
		Breaks: 1,
	}
	if d := cmp.Diff(want, turn); d != "" {
		t.Error(d)
	}
}
