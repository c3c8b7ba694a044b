package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a client whose server is a process: the command.
type agent struct {
	*testing.T
	*sdk.ClientSession
	cmd *exec.Cmd
}

// startAgent starts a server for an agent that works in a folder, with the environment of a user whose home is another one.
func startAgent(t *testing.T, home, project string, env []string, args ...string) *agent {
	t.Helper()
	cmd := exec.Command("ctxtool", append([]string{"mcp"}, args...)...)
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+filepath.Join(home, "data"), "CODEX_HOME=", "CLAUDE_CONFIG_DIR=")
	cmd.Env = append(cmd.Env, env...)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &agent{t, session, cmd}
}

func (a *agent) call(tool string, args map[string]any) string {
	a.Helper()
	r, err := a.CallTool(a.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil || r.IsError {
		a.Fatalf("%s: %v, %+v", tool, err, r)
	}
	return r.Content[0].(*sdk.TextContent).Text
}

// sessionOfClaude is a history of Claude Code, in which a long search found a port.
func sessionOfClaude(project string) string {
	var b strings.Builder
	for i := range 60 {
		role, text := "user", fmt.Sprintf("Look at service %d next.", i)
		switch {
		case i == 31:
			role, text = "assistant", "Found it: the staging database is called heron."
		case i == 33:
			role, text = "assistant", "It listens on port 54377, since 5432 was taken."
		case i%2 == 1:
			role, text = "assistant", fmt.Sprintf("Service %d is as it was.", i)
		}
		follows := "null"
		if i > 0 {
			follows = fmt.Sprintf(`"c0000000-0000-4000-8000-%012d"`, i-1)
		}
		line, _ := json.Marshal(text)
		fmt.Fprintf(&b, `{"parentUuid":%s,"sessionId":"c0000000-0000-4000-8000-999999999999","cwd":%q,"type":%q,`+
			`"uuid":"c0000000-0000-4000-8000-%012d","timestamp":"2026-03-01T10:00:%02dZ","message":{"role":%q,"content":%s}}`+"\n",
			follows, project, role, i, i, role, line)
	}
	return b.String()
}

// sessionOfCodex is a history of Codex that has asked only.
func sessionOfCodex(project string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-02T08:00:00.000Z","type":"session_meta","payload":{"id":"0196aaaa-0000-7000-8000-00000000000f",`+
		`"timestamp":"2026-03-02T08:00:00.000Z","cwd":%q,"originator":"codex_cli_rs","cli_version":"0.99.0"}}
{"timestamp":"2026-03-02T08:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[`+
		`{"type":"input_text","text":"Which port does the staging database use?"}]}}
`, project)
}

var (
	hitOfContext = regexp.MustCompile(`(?m)^\[context ([0-9a-f-]{36})`)
	hitAt        = regexp.MustCompile(`(?m)^\[\S+ #(\d+), assistant.*\]\n> .*heron`)
	portNumber   = regexp.MustCompile(`(?m)^> .*\bport (\d{5})\b`)
)

// answers does what a model does with the tools: it asks, looks for words, and reads around a hit until it sees a port.
func (a *agent) answers(question, word string) (port string, calls []string) {
	context, around := "", ""
	for _, try := range []string{"search", "read", "recall"} {
		args := map[string]any{"question": question}
		switch try {
		case "search":
			args = map[string]any{"query": word}
		case "read":
			args = map[string]any{"context": context, "around": around}
		}
		text := a.call(try, args)
		calls = append(calls, try)
		if m := portNumber.FindStringSubmatch(text); m != nil {
			return m[1], calls
		}
		if m := hitOfContext.FindStringSubmatch(text); m != nil {
			context = m[1]
		}
		if m := hitAt.FindStringSubmatch(text); m != nil {
			around = m[1]
		}
	}
	return "", calls
}

// TestAgent: an agent in a session of Codex finds what one of Claude Code found, with a server that begins without a store and
// imports by itself; and again when that is killed and begun again.
func TestAgent(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	appendTo(t, filepath.Join(home, ".claude", "projects", "walk", "session.jsonl"), sessionOfClaude(project))
	appendTo(t, filepath.Join(home, ".codex", "sessions", "rollout-1.jsonl"), sessionOfCodex(project))
	asking := []string{"CTXDIR_SESSION=0196aaaa-0000-7000-8000-00000000000f"}
	for round := range 3 {
		var args []string
		if round == 0 {
			args = append(args, "--follow")
		}
		a := startAgent(t, home, project, asking, args...)
		tools, err := a.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 7 {
			t.Fatalf("%+v, %v", tools, err)
		}
		port, calls := a.answers("Which port does the staging database use?", "heron")
		if port != "54377" || len(calls) != 2 {
			t.Errorf("round %d: port %q after %v", round, port, calls)
		}
		text := a.call("recall", map[string]any{"question": "Which port does the staging database use?"})
		if !strings.Contains(text, "54377") || !strings.Contains(text, "from claude-code") || strings.Contains(text, "from codex") {
			t.Errorf("round %d: %s", round, text)
		}
		if err := a.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.ListTools(t.Context(), nil); err == nil {
			t.Error("a killed server answers")
		}
	}
	// Without its id, the conversation that asks is not taken for one that was imported now but is old.
	if text := startAgent(t, home, project, nil).call("list", nil); !strings.Contains(text, "shown: 2,") {
		t.Error(text)
	}
}

// TestAgentWithoutHistories: a server begins without a store and without histories, and says what to do.
func TestAgentWithoutHistories(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{nil, {"--follow"}, {"--write"}} {
		a := startAgent(t, home, t.TempDir(), nil, args...)
		if text := a.call("recall", map[string]any{"question": "Which port?"}); !strings.Contains(text, `"ctxtool import"`) {
			t.Errorf("%v: %s", args, text)
		}
	}
}
