package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestContextRemote: a summary by a server has its sources, nothing private reaches the server, and a server that fails is
// an error, or with hybrid a note.
func TestContextRemote(t *testing.T) {
	p := newInProcess(t)
	do := func(stdin string, args ...string) string {
		t.Helper()
		if code := p.run(t.Context(), stdin, args...); code != 0 {
			t.Fatalf("%q: %d: %s", args, code, p.stderr.String())
		}
		return p.stdout.String()
	}
	var sent strings.Builder
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&sent, r.Body)
		fmt.Fprintf(&sent, " %v", r.Header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"They restart the [name] queue after a failure."}}]}`)
	}))
	defer server.Close()
	do("", "new", "--id", walkID, "--label", "project=/home/ada/lantern")
	do("", "branch", "new", walkID, "feature/harbour")
	var lines strings.Builder
	for i := range 150 {
		fmt.Fprintf(&lines, `{"role":"assistant","content":"The lantern harbour queue %d waits. We decided to restart it after a failure of `+
			"`canary()`"+` in src/canary%d.go, because it is fast."}`+"\n", i, i)
	}
	do(lines.String(), "append", walkID, "--jsonl")
	context := []string{"context", walkID, "--query", "why does the queue wait", "--max-tokens", "1500", "--remote", server.URL}
	text := do("", append(context, "--explain")...)
	if !strings.Contains(text, "- They restart the [name] queue after a failure.\n(Written by another model from #") ||
		!strings.Contains(p.stderr.String(), "in the summary") {
		t.Errorf("%s\n%s", text, p.stderr.String())
	}
	for _, canary := range []string{"lantern", "harbour", "canary", "ada", "src", walkID, "why does"} {
		if strings.Contains(sent.String(), canary) {
			t.Errorf("%q was sent: %s", canary, sent.String())
		}
	}
	if got := do("", append(context, "--json")...); !strings.Contains(got, `"kind":"summary","strategy":"summarise_remote"`) ||
		!strings.Contains(got, `"from":[{"context":"`+walkID+`","branch":"main","position":`) {
		t.Errorf("records %s", got)
	}
	status = http.StatusUnauthorized
	context[5] = "1400" // the summary above is kept
	if code := p.run(t.Context(), "", context...); code != exitFailed || !strings.Contains(p.stderr.String(), "status 401") {
		t.Errorf("a server that refuses: %d: %s", code, p.stderr.String())
	}
	text = do("", append(context, "--extraction", "hybrid", "--format", "openai")...)
	if !strings.Contains(text, "(Sentences of #") || !strings.Contains(p.stderr.String(), "it was done locally instead") {
		t.Errorf("hybrid: %s\n%s", text, p.stderr.String())
	}
	sent.Reset()
	local := append(context[:len(context)-2:len(context)-2], "--extraction", "local")
	if text = do("", local...); !strings.Contains(text, "(Sentences of #") {
		t.Errorf("local: %s", text)
	}
	do("", "config", "extraction=local")
	if code := p.run(t.Context(), "", context...); code != exitFailed || sent.Len() > 0 {
		t.Errorf("a store that keeps all here: %d, sent %q", code, sent.String())
	}
	for _, wrong := range [][]string{{"--extraction", "hybrid"}, {"--model", "m"}, {"--remote", server.URL, "--extraction", "zip"}} {
		if code := p.run(t.Context(), "", append([]string{"context", walkID}, wrong...)...); code != exitUsage {
			t.Errorf("%q: %d", wrong, code)
		}
	}
}
