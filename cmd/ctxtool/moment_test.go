package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// TestMomentList: the list of moments fits a narrow terminal, keeps what they say readable, and shows ids that rm takes.
func TestMomentList(t *testing.T) {
	p := newInProcess(t)
	do := func(args ...string) {
		t.Helper()
		if code := p.run(t.Context(), "", args...); code != 0 {
			t.Fatalf("%q: %d: %s", args, code, p.stderr.String())
		}
	}
	do("new", "--id", walkID)
	do("moment", "add", walkID, "--type", "solution", "--relevance", "0.25", strings.Repeat("It is a long sentence. ", 20))
	do("moment", "add", walkID, "--type", "decision", "Where does the queue live?\nWe keep the queue in memory.")
	screen := &screen{columns: 80, rows: 24}
	if code := run(t.Context(), []string{"moment", "ls"}, strings.NewReader(""), screen, &strings.Builder{}, p.env); code != 0 {
		t.Fatal(code)
	}
	lines := strings.Split(strings.TrimRight(screen.String(), "\n"), "\n")
	if len(lines) != 3+1+momentLines {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines {
		if uniseg.StringWidth(stripped(line)) > 80 {
			t.Errorf("too long: %q", line)
		}
	}
	head := strings.Fields(stripped(lines[0]))
	if len(head) != 5 || head[0] != "decision" || head[2] != "0.50" ||
		lines[1] != "    Where does the queue live?" || lines[2] != "    We keep the queue in memory." {
		t.Fatalf("%q", lines[:3])
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "…") {
		t.Errorf("a long moment ends with %q", last)
	}
	id := head[1]
	do("moment", "rm", id)
	do("moment", "ls", "--json")
	if got := p.stdout.String(); strings.Count(got, `"record":"moment"`) != 1 || !strings.Contains(got, "long sentence") {
		t.Errorf("after rm %s: %s", id, got)
	}
}

// stripped is a line without colours.
func stripped(line string) string {
	for {
		before, rest, ok := strings.Cut(line, "\x1b[")
		if !ok {
			return line
		}
		_, after, _ := strings.Cut(rest, "m")
		line = before + after
	}
}

// TestMomentRemote: no name of the store, no code and no path reaches the server, and the key is only in the request.
func TestMomentRemote(t *testing.T) {
	p := newInProcess(t)
	do := func(stdin string, args ...string) {
		t.Helper()
		if code := p.run(t.Context(), stdin, args...); code != 0 {
			t.Fatalf("%q: %d: %s", args, code, p.stderr.String())
		}
	}
	var sent strings.Builder
	answer := `[{\"n\":1,\"type\":\"decision\",\"relevance\":0.8}]`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&sent, r.Body)
		fmt.Fprintf(&sent, " %v", r.Header)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"}}]}`, answer)
	}))
	defer server.Close()
	t.Setenv("CTXDIR_REMOTE_KEY", "the-key")
	do("", "new", "--id", walkID, "--label", "project=/home/ada/lantern")
	do("", "branch", "new", walkID, "feature/harbour")
	do("", "append", walkID, "--role", "assistant",
		"We decided to keep the lantern harbour queue of `canary()` in src/canary.go because it is fast.")
	do("", "moment", "extract", walkID, "--remote", server.URL, "--dry-run", "--json")
	if got := p.stdout.String(); !strings.Contains(got, "lantern harbour queue") || !strings.Contains(got, `"relevance":0.8`) {
		t.Errorf("found %s", got)
	}
	if !strings.Contains(sent.String(), "We decided to keep the [name] queue of [code] in [path] because it is fast.") {
		t.Errorf("sent %s", sent.String())
	}
	for _, canary := range []string{"lantern", "harbour", "canary", "ada"} {
		if strings.Contains(sent.String(), canary) {
			t.Errorf("%q was sent: %s", canary, sent.String())
		}
	}
	answer = "no"
	if code := p.run(t.Context(), "", "moment", "extract", walkID, "--remote", server.URL, "--dry-run"); code != exitFailed {
		t.Errorf("a useless answer: %d: %s", code, p.stderr.String())
	}
	do("", "moment", "extract", walkID, "--remote", server.URL, "--extraction", "hybrid", "--dry-run", "--json")
	if got := p.stdout.String(); !strings.Contains(got, `"moments":1`) {
		t.Errorf("hybrid: %s", got)
	}
	do("", "config", "extraction=hybrid")
	do("", "moment", "extract", walkID, "--remote", server.URL, "--dry-run")
	do("", "config", "extraction=local")
	sent.Reset()
	if code := p.run(t.Context(), "", "moment", "extract", walkID, "--remote", server.URL, "--dry-run"); code != exitFailed || sent.Len() > 0 {
		t.Errorf("a store that keeps all here: %d, sent %q", code, sent.String())
	}
}
