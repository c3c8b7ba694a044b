package importer

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// linksOf returns, for each record, the records that it names, by their numbers in the order of the file: "3=1" for a
// copy, "3>1" for a record that repeats another.
func linksOf(t *testing.T, lines ...string) (links []string, info Info) {
	t.Helper()
	s := newFakeStore()
	got := importFile(t, s, transcriptOf(t, lines...), Options{})
	if len(got.errs)+len(got.problems) > 0 {
		t.Fatal(got)
	}
	at := map[uuid.UUID]string{}
	var records []Record
	c := s.only(t)
	for i, l := range lines {
		found := false
		s.each(func(r Record) {
			if !found && string(r.Body) == l && at[r.ID] == "" {
				at[r.ID] = string(rune('0' + i))
				records, found = append(records, r), true
			}
		})
	}
	for _, r := range records {
		for _, id := range r.CopyOf {
			links = append(links, at[r.ID]+"="+at[id])
		}
		for _, id := range r.Repeats {
			links = append(links, at[r.ID]+">"+at[id])
		}
	}
	if c.info.TitleFrom != uuid.Nil {
		links = append(links, "title="+at[c.info.TitleFrom])
	}
	return links, c.info
}

// TestRepeats: the later of two records that repeat each other names the other.
func TestRepeats(t *testing.T) {
	t.Parallel()
	codex := func(typ, payload string) string {
		return `{"timestamp":"2026-07-01T11:16:12.216Z","type":"` + typ + `","payload":` + payload + `}`
	}
	meta := codex("session_meta", `{"id":"019f1d64-a048-7e10-8a4d-fd6b9e9d7b34","cwd":"/p"}`)
	said := func(role, text string) string {
		return codex("response_item", `{"type":"message","role":"`+role+`","content":[{"type":"input_text","text":"`+text+`"}]}`)
	}
	event := func(typ, text string) string { return codex("event_msg", `{"type":"`+typ+`","message":"`+text+`"}`) }
	const session = `"sessionId":"0195f0a0-0000-7000-8000-0000000000ff"`
	claude := func(uuid, typ, members string) string {
		return `{"type":"` + typ + `","uuid":"0195f0a0-0000-7000-8000-00000000000` + uuid + `",` + session + `,` + members + `}`
	}
	call := func(uuid, input string) string {
		return claude(uuid, "assistant", `"message":{"role":"assistant","content":[{"type":"tool_use","id":"call-1","input":`+input+`}]}`)
	}
	result := func(uuid, call, content, beside string) string {
		return claude(uuid, "user", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+call+`","content":`+content+
			`}]},"toolUseResult":`+beside)
	}
	edit := call("2", `{"file_path":"/a","new_string":"the new"}`)
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"a prompt of Codex and its mirror": {
			[]string{meta, said("user", "hello there"), event("user_message", "hello there")}, "2=1 title=1",
		},
		"a mirror of Codex before its item": {
			[]string{
				meta, event("agent_message", "done"), said("assistant", "done"),
				codex("event_msg", `{"type":"task_complete","last_agent_message":"done"}`),
			},
			"2=1 3=2",
		},
		"equal prompts are not linked, their mirrors are": {
			[]string{meta, said("user", "go on"), event("user_message", "go on"), said("user", "go on"), event("user_message", "go on ")},
			"2=1 3=2 title=1",
		},
		"a tool call of Codex": {
			[]string{
				meta, codex("response_item", `{"type":"custom_tool_call","call_id":"c1","input":"patch"}`),
				codex("event_msg", `{"type":"patch_apply_end","call_id":"c1","stdout":"x"}`),
				codex("response_item", `{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`),
			},
			"2=1 3=2",
		},
		"a compaction of Codex repeats messages": {
			[]string{
				meta, said("user", "hello there"), said("assistant", "hi"),
				codex("compacted", `{"replacement_history":[{"type":"message","role":"user","content":[{"text":"hello there"}]}]}`),
			},
			"3>1 title=1",
		},
		"a queued prompt of Claude Code, and the last prompt": {
			[]string{
				`{"type":"queue-operation","operation":"enqueue","content":"do it",` + session + `}`,
				claude("1", "user", `"message":{"role":"user","content":"do it"}`),
				`{"type":"last-prompt","lastPrompt":"do it",` + session + `}`,
			},
			"1=0 2=1 title=1",
		},
		"a summary of Claude Code": {
			[]string{
				claude("1", "user", `"message":{"role":"user","content":"do it"}`),
				`{"type":"summary","summary":"It was done","leafUuid":"0195f0a0-0000-7000-8000-000000000001"}`,
			},
			"1=0 title=1",
		},
		"a result that repeats the call": {
			[]string{
				claude("1", "user", `"message":{"role":"user","content":"do it"}`), edit,
				result("3", "call-1", `"ok"`, `{"filePath":"/a","newString":"the new"}`),
			},
			"2>1 title=0",
		},
		"a result that does not": {
			[]string{
				claude("1", "user", `"message":{"role":"user","content":"do it"}`), edit,
				result("3", "call-1", `"ok"`, `{"filePath":"/a","newString":"other"}`),
				result("4", "call-2", `"ok"`, `{"newString":"the new"}`),
			},
			"title=0",
		},
		"a sidechain": {
			[]string{
				claude("1", "user", `"message":{"role":"user","content":"do it"}`),
				call("2", `{"prompt":"look there"}`),
				claude("3", "user", `"isSidechain":true,"message":{"role":"user","content":"look there"}`),
				claude("4", "assistant", `"isSidechain":true,"message":{"role":"assistant","content":[{"type":"text","text":"found"}]}`),
				result("5", "call-1", `[{"type":"text","text":"found"}]`, `{"prompt":"look there","content":[{"type":"text","text":"found"}]}`),
			},
			"2=1 4>3 4>1 title=0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			links, info := linksOf(t, test.lines...)
			if got := strings.Join(links, " "); got != test.want {
				t.Errorf("%q, title %q; wanted %q", got, info.Title, test.want)
			}
		})
	}
}
