package apirules

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	ask  = `{"role":"user","content":"How deep?"}`
	call = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"sound","input":{}}]}`
	done = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"3 m"}]}`
)

// block is a request of one message with one block of content.
func block(role, b string) string {
	if role == "user" {
		return `{"role":"user","content":[` + b + `]}`
	}
	return ask + `,{"role":"` + role + `","content":[` + b + `]}`
}

func TestAnthropic(t *testing.T) {
	for name, test := range map[string]struct {
		messages string
		want     string // in a fault; "" if there is none
	}{
		"a text":                {ask, ""},
		"a call and its result": {ask + "," + call + "," + done + "," + ask, ""},
		"texts behind a result": {ask + "," + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},` +
			`{"type":"text","text":"a"}]}`, ""},
		"roles repeat": {ask + "," + ask, ""},
		"an image":     {block("user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`), ""},
		"a document":   {block("user", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}`), ""},
		"thoughts first": {block("assistant", `{"type":"thinking","thinking":"","signature":"s"},`+
			`{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}`), ""},
		"the assistant first":     {`{"role":"assistant","content":"a"}`, "the first message"},
		"the system as a message": {ask + `,{"role":"system","content":"a"}`, `the role "system"`},
		"another member":          {`{"role":"user","content":"a","id":"x"}`, "unknown members [id]"},
		"a blank text":            {block("user", `{"type":"text","text":" "}`), "text has no text"},
		"a blank content":         {`{"role":"user","content":" "}`, "an empty text"},
		"no blocks":               {`{"role":"user","content":[]}`, "no content"},
		"null":                    {`{"role":"user","content":null}`, "neither a text nor a list"},
		"an unknown block":        {block("user", `{"type":"input_text","text":"a"}`), `a block of type "input_text"`},
		"a call without a result": {ask + "," + call, "calls without results at the end"},
		"a result too late":       {ask + "," + call + "," + ask + "," + done, "it does not begin with the results"},
		"a result behind text": {ask + "," + call + `,{"role":"user","content":[{"type":"text","text":"a"},` +
			`{"type":"tool_result","tool_use_id":"t1"}]}`, "behind other content"},
		"an orphan": {done, "which the previous message does not call"},
		"a result twice": {ask + "," + call + "," + done[:len(done)-2] + "," + `{"type":"tool_result",` +
			`"tool_use_id":"t1"}]}`, "does not call"},
		"an id twice":             {ask + "," + call + "," + done + "," + call + "," + done, "was used before"},
		"a strange id":            {ask + "," + strings.ReplaceAll(call, "t1", "t.1") + "," + strings.ReplaceAll(done, "t1", "t.1"), "the id"},
		"a strange name":          {ask + "," + strings.ReplaceAll(call, "sound", "a b") + "," + done, "the tool"},
		"an input that is a text": {ask + "," + strings.ReplaceAll(call, "{}", `"x"`) + "," + done, "is no object"},
		"a call of the user": {`{"role":"user","content":[{"type":"tool_use","id":"t1","name":"f",` +
			`"input":{}}]},` + done, "a call in the role user"},
		"a result with audio": {ask + "," + call + "," + strings.ReplaceAll(done, `"3 m"`, `[{"type":"audio"}]`), `with a block "audio"`},
		"an image of another type": {
			block("user", `{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AAAA"}}`), `an image of type "image/bmp"`,
		},
		"an image with line ends": {block("user", `{"type":"image","source":{"type":"base64","media_type":"image/png",`+
			`"data":"AA\nAA"}}`), "base64"},
		"an image of the assistant": {block("assistant", `{"type":"image","source":{"type":"url",`+
			`"url":"https://a"}}`), "image in the role assistant"},
		"a document of another type": {block("user", `{"type":"document","source":{"type":"base64","media_type":"text/csv",`+
			`"data":"AAAA"}}`), "a document"},
		"a thought without signature": {block("assistant", `{"type":"thinking","thinking":"a"}`), "no signature"},
		"a thought behind text": {block("assistant", `{"type":"text","text":"a"},{"type":"thinking","thinking":"a",`+
			`"signature":"s"}`), "not at the beginning"},
		"a redacted thought, empty": {block("assistant", `{"type":"redacted_thinking"}`), "no data"},
	} {
		expect(t, name, Anthropic([]byte(`{"messages":[`+test.messages+`]}`)), test.want)
	}
	expect(t, "a blank system prompt", Anthropic([]byte(`{"system":" ","messages":[`+ask+`]}`)), "no system")
	expect(t, "no messages", Anthropic([]byte(`[]`)), "no object with messages")
}

// expect wants one fault with a text, or none.
func expect(t *testing.T, name string, found []string, want string) {
	t.Helper()
	if (want == "") != (len(found) == 0) || !strings.Contains(strings.Join(found, "\n"), want) {
		t.Errorf("%s: %q, wanted %q", name, found, want)
	}
}

func TestChatCompletions(t *testing.T) {
	const (
		calls  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		answer = `{"role":"tool","content":"3 m","tool_call_id":"c1"}`
	)
	for name, test := range map[string]struct{ messages, want string }{
		"every role":  {`{"role":"system","content":"a"},{"role":"developer","content":"a"},` + ask + "," + calls + "," + answer, ""},
		"an id again": {calls + "," + answer + "," + calls + "," + answer, ""},
		"parts": {`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url",` +
			`"image_url":{"url":"data:image/png;base64,AAAA"}}]}`, ""},
		"no role":         {`{"content":"a"}`, `the role ""`},
		"an old role":     {`{"role":"function","name":"f","content":"a"}`, `the role "function"`},
		"another member":  {`{"role":"user","content":"a","x":1}`, "unknown members [x]"},
		"no content":      {`{"role":"assistant","content":null}`, "no content"},
		"no parts":        {`{"role":"user","content":[]}`, "an empty list"},
		"an object":       {`{"role":"user","content":{}}`, "neither a text nor a list"},
		"an unknown part": {`{"role":"user","content":[{"type":"tool_result"}]}`, `a part of type "tool_result"`},
		"an image elsewhere": {`{"role":"assistant","content":[{"type":"image_url",` +
			`"image_url":{"url":"https://a"}}]}`, `in the role assistant`},
		"an image type": {`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/bmp;base64,` +
			`AAAA"}}]}`, `"image/bmp"`},
		"an image without URL":  {`{"role":"user","content":[{"type":"image_url","image_url":"https://a"}]}`, "no URL"},
		"a file without data":   {`{"role":"user","content":[{"type":"file","file":{}}]}`, "file_id"},
		"no result":             {calls, "calls without results"},
		"a result too late":     {calls + "," + ask + "," + answer, "before the results"},
		"an orphan":             {answer, "do not call"},
		"a result twice":        {calls + "," + answer + "," + answer, "do not call"},
		"no calls":              {`{"role":"assistant","tool_calls":[]}`, "no list of calls"},
		"a long id":             {strings.ReplaceAll(calls+","+answer, "c1", strings.Repeat("c", 41)), "the id"},
		"a strange name":        {strings.ReplaceAll(calls, `"f"`, `"f.g"`) + "," + answer, "the function"},
		"arguments, an object":  {strings.ReplaceAll(calls, `"{}"`, `{}`) + "," + answer, "arguments"},
		"arguments, half":       {strings.ReplaceAll(calls, `"{}"`, `"{"`) + "," + answer, "arguments"},
		"a call of another API": {strings.ReplaceAll(calls, `"type":"function"`, `"type":"tool_use"`) + "," + answer, "a call of type"},
	} {
		expect(t, name, ChatCompletions([]byte("["+test.messages+"]")), test.want)
	}
	expect(t, "no list", ChatCompletions([]byte("{}")), "no list")
}

func TestResponses(t *testing.T) {
	const (
		asked  = `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`
		called = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
		output = `{"type":"function_call_output","call_id":"c1","output":"3 m"}`
	)
	for name, test := range map[string]struct{ items, want string }{
		"a call and its output": {asked + "," + called + "," + output, ""},
		"thoughts":              {`{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}`, ""},
		"no output":             {called, "no output of"},
		"an orphan":             {output, "which no item before it calls"},
		"an output twice":       {called + "," + output + "," + output, "which no item before it calls"},
		"an id twice":           {called + "," + called + "," + output, "used before"},
		"no id":                 {strings.ReplaceAll(called, "c1", ""), "no call_id"},
		"a strange name":        {strings.ReplaceAll(called, `"f"`, `"f.g"`) + "," + output, "the function"},
		"arguments":             {strings.ReplaceAll(called, `"{}"`, `"x"`) + "," + output, "arguments"},
		"an unknown item":       {`{"type":"text"}`, `an item of type "text"`},
		"a role":                {strings.ReplaceAll(asked, "user", "tool"), `the role "tool"`},
		"a part of the user":    {strings.ReplaceAll(asked, "user", "assistant"), `a part of type "input_text"`},
		"an empty text":         {strings.ReplaceAll(asked, `"a"`, `""`), "no text"},
		"no parts":              {`{"type":"message","role":"user","content":[]}`, "no content"},
		"no summary":            {`{"type":"reasoning"}`, "without a summary"},
		"an image type": {`{"type":"message","role":"user","content":[{"type":"input_image",` +
			`"image_url":"data:image/bmp;base64,AAAA"}]}`, "image/bmp"},
	} {
		var items []json.RawMessage
		if err := json.Unmarshal([]byte("["+test.items+"]"), &items); err != nil {
			t.Fatal(name, err)
		}
		expect(t, name, Responses(items), test.want)
	}
}
