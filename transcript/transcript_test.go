package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var someBlob = strings.Repeat("0", 64)

func TestParts(t *testing.T) {
	tests := []struct {
		name, body string
		want       []Part
	}{
		{"text", `{"role":"user","content":"hi"}`, []Part{{Text: "hi"}}},
		{
			"blocks",
			`{"content":[{"type":"text","text":"a"},{"type":"input_text","text":"b"},"c"]}`,
			[]Part{{Text: "a"}, {Text: "b"}, {Text: "c"}},
		},
		{"session record", `{"type":"user","message":{"role":"user","content":"hi"}}`, []Part{{Text: "hi"}}},
		{
			"payload",
			`{"type":"response_item","payload":{"role":"assistant","content":[{"type":"output_text","text":"hi"}]}}`,
			[]Part{{Text: "hi"}},
		},
		{"node", `{"id":"x","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi",""]}}}`, []Part{{Text: "hi"}}},
		{
			"parts",
			`{"role":"model","parts":[{"text":"hi"},{"functionCall":{"name":"f","args":{"a":1.0}}}]}`,
			[]Part{{Text: "hi"}, {Kind: Call, Name: "f", Text: `{"a":1.0}`}},
		},
		{"thinking", `{"content":[{"type":"thinking","thinking":"hm"}]}`, []Part{{Kind: Thought, Text: "hm"}}},
		{
			"tool use",
			`{"content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}`,
			[]Part{{Kind: Call, Name: "Bash", Text: `{"command":"ls"}`}},
		},
		{
			"tool result",
			`{"content":[{"type":"tool_result","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
			[]Part{{Kind: Result, Text: "a\nb"}},
		},
		{"tool spelled otherwise", `{"role":"Tool","content":"done"}`, []Part{{Kind: Result, Text: "done"}}},
		{"tool as author", `{"message":{"author":{"role":"tool"},"content":{"parts":["done"]}}}`, []Part{{Kind: Result, Text: "done"}}},
		{"tool message", `{"role":"tool","tool_call_id":"1","content":"done"}`, []Part{{Kind: Result, ID: "1", Text: "done"}}},
		{
			"tool calls",
			`{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
			[]Part{{Kind: Call, Name: "f", Text: `{"a":1}`}},
		},
		{
			"custom tool call",
			`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"x"}}]}`,
			[]Part{{Kind: Call, Name: "f", ID: "1", Text: "x"}},
		},
		{
			"function call",
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
			[]Part{{Kind: Call, Name: "f", ID: "function f", Text: "{}"}},
		},
		{"function", `{"role":"function","name":"f","content":"done"}`, []Part{{Kind: Result, ID: "function f", Text: "done"}}},
		{"refusal", `{"role":"assistant","content":null,"refusal":"no"}`, []Part{{Text: "no"}}},
		{"refusal in a block", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, []Part{{Text: "no"}}},
		{
			"image",
			`{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`,
			[]Part{{Kind: Attachment, Text: "image image/png, 3 B"}},
		},
		{
			"image elsewhere",
			`{"content":[{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]}`,
			[]Part{{Kind: Attachment, Text: "image"}},
		},
		{
			"image in a blob",
			`{"content":[{"type":"image_url","image_url":{"url":{"$blob":"` + someBlob +
				`","size":2048,"encoding":"base64","media_type":"image/gif"}}}]}`,
			[]Part{{Kind: Attachment, Text: "image image/gif, 2.0 KiB"}},
		},
		{
			"text in a blob",
			`{"content":[{"type":"text","text":{"$blob":"` + someBlob + `","size":10,"encoding":"base64"}}]}`,
			[]Part{{Kind: Attachment, Text: "payload, 10 B"}},
		},
		{
			"content in a blob",
			`{"content":{"$blob":"` + someBlob + `","size":10,"encoding":"base64","media_type":"a/b"}}`,
			[]Part{{Kind: Attachment, Text: "payload a/b, 10 B"}},
		},
		{"summary", `{"type":"summary","summary":"all of it"}`, []Part{{Text: "all of it"}}},
		{"unknown", `{"n":1.0}`, []Part{{Kind: Other, Text: `{"n":1.0}`}}},
		{"unknown block", `{"content":[{"type":"new","n":1}]}`, []Part{{Kind: Other, Text: `{"type":"new","n":1}`}}},
		{"nothing said", `{"role":"user","content":[]}`, nil},
		{"odd types", `{"role":1,"content":2,"tool_calls":{},"message":[],"parts":"x"}`, []Part{{Text: "x"}}},
	}
	for _, test := range tests {
		if got := Parts(json.RawMessage(test.body)); !cmp.Equal(got, test.want, cmpopts.IgnoreFields(Part{}, "File")) {
			t.Errorf("%s: %+v, wanted %+v", test.name, got, test.want)
		}
	}
}

// TestVoices spells roles as frameworks do.
func TestVoices(t *testing.T) {
	for role, want := range map[string]string{
		"user": "user", "User": "user", "human": "user", "Assistant": "assistant", "model": "assistant", "TOOL": "tool", "function": "tool",
		"developer": "system", "System": "system", "critic": "", "": "",
	} {
		if got := Voice(role); got != want {
			t.Errorf("%q: %q, wanted %q", role, got, want)
		}
	}
}
