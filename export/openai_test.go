package export

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// TestOpenAI: messages get the form of the API, without members that it refuses, and with a result after each call.
func TestOpenAI(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"a member of another API", `{"role":"user","content":"a","x":1.0}`, `[{"role":"user","content":"a"}]`},
		{
			"parts, a developer, a name",
			`{"role":"developer","name":"ada","content":[{"type":"text","text":"a","x":1}]}`,
			`[{"role":"developer","content":[{"text":"a","type":"text"}],"name":"ada"}]`,
		},
		{"a boundary without a role", `{"type":"system","subtype":"compact_boundary","content":"x","sessionId":"s"}`, `[]`},
		{"a role in capitals", `{"role":"User","content":"a"}`, `[{"role":"user","content":"a"}]`},
		{"session record", `{"type":"user","message":{"role":"user","content":"a"}}`, `[{"role":"user","content":"a"}]`},
		{
			"tools",
			`{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"a<b"},` +
				`{"type":"tool_use","id":"t1","name":"f.g","input":{"n":1.0}}]}}`,
			`[{"role":"assistant","content":"a<b",` +
				`"tool_calls":[{"id":"t1","type":"function","function":{"name":"f_g","arguments":"{\"n\":1.0}"}}]},` +
				`{"role":"tool","content":"(no result was recorded)","tool_call_id":"t1"}]`,
		},
		{
			"a result without its call",
			`{"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}`,
			`[{"role":"user","content":"[result of a tool] ok"}]`,
		},
		{
			"image",
			`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}`,
			`[{"role":"user","content":[{"image_url":{"url":"data:image/png;base64,AA=="},"type":"image_url"}]}]`,
		},
		{"node", `{"message":{"author":{"role":"user"},"content":{"parts":["a"]}}}`, `[{"role":"user","content":"a"}]`},
		{"no message", `{"type":"progress","data":{}}`, `[]`},
	}
	for _, test := range tests {
		var b strings.Builder
		e := newOpenAI(&b, false)
		begun := e.begin(&ctxdir.Metadata{}, "")
		body := json.RawMessage(test.body)
		m := &ctxdir.Message{Role: transcript.Inner(body).RoleOf()}
		err := errors.Join(begun, e.message(&record.Loaded{Message: m, Body: body}), e.end())
		if lost := e.omitted(); (test.want == "[]") != (lost.Messages == 1) {
			t.Errorf("%s: left out %v", test.name, lost)
		}
		if got := strings.NewReplacer("\n  ", "", "\n", "").Replace(b.String()); err != nil || got != test.want {
			t.Errorf("%s: %v\n%s\nwanted\n%s", test.name, err, got, test.want)
		}
	}
}
