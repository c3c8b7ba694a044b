package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/apirules"
)

const (
	askHostile  = `{"role":"user","content":"How deep is the lock?"}`
	callHostile = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"sound","input":{"at":"gate"}}]}`
	pngHostile  = `"source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}`
)

// hostileConversations are conversations that break a rule of an API if their messages are written as they are.
var hostileConversations = map[string][]string{
	"a result without its call": {
		askHostile, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"3 m"}]}`,
		`{"role":"tool","tool_call_id":"gone","content":"4 m"}`,
	},
	"an interrupted call":    {askHostile, callHostile, `{"role":"user","content":"Stop."}`},
	"a call at the end":      {askHostile, callHostile},
	"a call without content": {askHostile, `{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"sound"}}]}`},
	"a call answered twice": {
		askHostile, callHostile,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"3 m"},{"type":"tool_result",` +
			`"tool_use_id":"t1","content":"4 m"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"5 m"}]}`,
	},
	"an answer after other content": {
		askHostile, callHostile, `{"role":"user","content":"Wait."}`,
		`{"role":"user","content":[{"type":"text","text":"Here:"},{"type":"tool_result","tool_use_id":"t1","content":"3 m"}]}`,
	},
	"one id for two calls": {
		askHostile, callHostile, `{"role":"tool","tool_call_id":"t1","content":"3 m"}`,
		callHostile, `{"role":"tool","tool_call_id":"t1","content":"4 m"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"a","input":{}},{"type":"tool_use","id":"t1",` +
			`"name":"b","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1_2","name":"a","input":{}},{"type":"tool_use","name":"b","input":{}}]}`,
	},
	"strange ids and names": {
		askHostile,
		`{"role":"assistant","tool_calls":[{"id":"` + strings.Repeat("é.", 40) + `","type":"function",` +
			`"function":{"name":"` + strings.Repeat("mcp:", 40) + `","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"` + strings.Repeat("é.", 40) + `","content":"3 m"}`,
		`{"role":"assistant","tool_calls":[{"id":"` + strings.Repeat("é.", 41) + `","type":"function","function":{"name":"",` +
			`"arguments":"{}"}}]}`,
	},
	"arguments that are no object": {
		askHostile,
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"half\":"}},` +
			`{"id":"b","type":"function","function":{"name":"f","arguments":"[1]"}},{"id":"c","type":"function",` +
			`"function":{"name":"f","arguments":""}},` +
			`{"id":"d","type":"custom","custom":{"name":"f","input":"x"}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"e","name":"f","input":null},{"type":"tool_use","id":"g",` +
			`"name":"f","input":"x"}]}`,
	},
	"empty texts": {
		`{"role":"user","content":""}`, `{"role":"assistant","content":" \n"}`, askHostile,
		`{"role":"user","content":[]}`, `{"role":"user","content":[{"type":"text","text":""}]}`,
		`{"role":"assistant","content":[{"type":"text","text":" "},{"type":"text","text":"3 m"}]}`,
		`{"role":"assistant","content":null}`, `{"role":"system","content":" "}`, `{"role":"user","content":null}`,
	},
	"the assistant first":   {`{"role":"assistant","content":"Good morning."}`, askHostile},
	"a call first":          {callHostile, `{"role":"tool","tool_call_id":"t1","content":"3 m"}`},
	"only the system":       {`{"role":"system","content":"Be kind."}`},
	"the system in between": {askHostile, `{"role":"developer","content":"Be brief."}`, `{"role":"system","content":"Be kind."}`},
	"the system with an image, and with a call": {
		askHostile, `{"role":"system","content":[{"type":"text","text":"See:"},{"type":"image",` + pngHostile + `}]}`,
		`{"role":"system","content":"x","tool_calls":[{"id":"s","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
	},
	"images": {
		`{"role":"user","content":[{"type":"image",` + pngHostile + `},{"type":"image_url","image_url":{"url":"data:image/bmp;base64,AAAA"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/lock.png"}},{"type":"text",` +
			`"text":"This?","x":1}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/heic","data":"AAAA"}}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO\nRw0K\n"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":"https://example.org/lock.png"}]}`,
		`{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`,
		`{"role":"assistant","content":[{"type":"image",` + pngHostile + `},{"type":"tool_use","id":"t1","name":"look","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image",` + pngHostile + `}]}]}`,
	},
	"files and audio": {
		`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}]}`,
		`{"role":"user","content":[{"type":"file","file":{"file_id":"f1"}},{"type":"input_audio","input_audio":{"data":"AAAA",` +
			`"format":"wav"}}]}`,
		`{"role":"user","content":[{"type":"file","file":{}}]}`,
		`{"role":"assistant","content":[{"type":"file","file":{"file_id":"f1"}}]}`,
	},
	"thoughts": {
		askHostile, `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":""}]}`,
		`{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"3 m"},{"type":"thinking",` +
			`"thinking":"So.","signature":"s"}]}`,
		`{"role":"assistant","reasoning_content":"Hm.","content":"4 m"}`,
	},
	"roles of nobody": {
		`{"role":"","content":"a"}`, `{"content":"b"}`, `{"role":"critic","content":"c"}`, `{"role":"User","content":"d"}`,
		`{"role":"ipython","content":"e"}`, `{"n":1}`,
	},
	"functions": {
		askHostile, `{"role":"assistant","content":null,"function_call":{"name":"sound","arguments":"{\"at\":\"gate\"}"}}`,
		`{"role":"function","name":"sound","content":"3 m"}`,
		`{"role":"assistant","content":null,"function_call":{"name":"sound","arguments":"{}"}}`,
		`{"role":"function","name":"sound","content":"4 m"}`,
	},
	"a refusal": {askHostile, `{"role":"assistant","content":null,"refusal":"I do not say."}`},
}

// TestHostileExportsKeepRules checks the exports of made-up conversations, and of branches that end inside them.
func TestHostileExportsKeepRules(t *testing.T) {
	for name, messages := range hostileConversations {
		t.Run(name, func(t *testing.T) {
			p := newInProcess(t)
			id := p.new(t)
			if code := p.run(t.Context(), strings.Join(messages, "\n")+"\n", "append", id, "--jsonl"); code != exitOK {
				t.Fatal(p.stderr.String())
			}
			for at := 1; at < len(messages); at++ {
				branch := "fork" + string(rune('0'+at))
				if code := p.run(t.Context(), "", "branch", "fork", id, branch, "--at", string(rune('0'+at))); code != exitOK {
					t.Fatal(p.stderr.String())
				}
			}
			keepsRules(t, p)
			contextKeepsRules(t, p, id)
		})
	}
}

// contextKeepsRules checks what a model is handed of a context.
func contextKeepsRules(t *testing.T, p *inProcess, id string) {
	t.Helper()
	for _, tokens := range []string{"60", "400", "4000"} {
		for format, rules := range map[string]func([]byte) []string{"openai": apirules.ChatCompletions, "anthropic": apirules.Anthropic} {
			code := p.run(t.Context(), "", "context", id, "--query", "lock", "--max-tokens", tokens, "--format", format)
			if code != exitOK {
				t.Errorf("context as %s: %s", format, p.stderr.String())
			}
			if found := rules([]byte(p.stdout.String())); len(found) > 0 {
				t.Errorf("context as %s: %s\n%s", format, strings.Join(found, "\n"), p.stdout.String())
			}
		}
	}
}

// TestExportsKeepWhatIsSaid: the mends of the exports lose no text.
func TestExportsKeepWhatIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		conversation string
		want         map[string]string // texts by format
	}{
		"functions": {"functions", map[string]string{"openai": `"content":"4 m","tool_call_id"`, "anthropic": `"content":"4 m"}`}},
		"a refusal": {"a refusal", map[string]string{"openai": "I do not say.", "anthropic": "I do not say.", "codex": "I do not say."}},
		"one id":    {"one id for two calls", map[string]string{"openai": `"id":"t1_2"`, "anthropic": `"tool_use_id":"t1_3"`}},
		"orphans":   {"a result without its call", map[string]string{"openai": "[result of a tool] 4 m", "claude-code": "a tool] 3 m"}},
		"developer": {"the system in between", map[string]string{"anthropic": `"Be brief.\n\nBe kind."`, "openai": `"role":"developer"`}},
		"audio":     {"files and audio", map[string]string{"openai": `"input_audio":{"data":"AAAA"`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newInProcess(t)
			id := p.new(t)
			messages := strings.Join(hostileConversations[test.conversation], "\n")
			if code := p.run(t.Context(), messages+"\n", "append", id, "--jsonl"); code != exitOK {
				t.Fatal(p.stderr.String())
			}
			for format, want := range test.want {
				if code := p.run(t.Context(), "", "export", id, "--format", format); code != exitOK {
					t.Fatal(p.stderr.String())
				}
				if got := p.stdout.String(); !strings.Contains(got, want) || format != "codex" && format != "claude-code" && !json.Valid([]byte(got)) {
					t.Errorf("%s without %s: %s", format, want, got)
				}
			}
		})
	}
}

// TestBlankPromptIsNone: no form gets a system prompt of white space.
func TestBlankPromptIsNone(t *testing.T) {
	p := newInProcess(t)
	prompt := filepath.Join(t.TempDir(), "prompt")
	if err := os.WriteFile(prompt, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := p.run(t.Context(), "", "new", "-q", "--system-prompt", prompt); code != exitOK {
		t.Fatal(p.stderr.String())
	}
	id := strings.TrimSpace(p.stdout.String())
	if code := p.run(t.Context(), askHostile+"\n", "append", id, "--jsonl"); code != exitOK {
		t.Fatal(p.stderr.String())
	}
	keepsRules(t, p)
}
