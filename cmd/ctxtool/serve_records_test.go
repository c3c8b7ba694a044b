package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/google/go-cmp/cmp"
)

const testToken = "0123456789abcdef0123456789abcdef"

// testServer serves a store until the test ends, and returns a function that gets a path.
func testServer(t *testing.T, store string) func(path string) []byte {
	t.Helper()
	s, err := ctxdir.Open(store)
	if err != nil {
		t.Fatal(err)
	}
	server, err := api.New(s, api.Options{Token: testToken, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(path string) []byte {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, resp.Status, b, err)
		}
		return b
	}
}

// objects decodes JSON values, without what only one side says.
func objects(t *testing.T, from []byte) (all []map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(from))
	d.UseNumber()
	for {
		var x map[string]any
		switch err := d.Decode(&x); err {
		case nil:
		case io.EOF:
			return all
		default:
			t.Fatalf("%v in %.300s", err, from)
		}
		if x["record"] == "summary" || x["record"] == "cursor" || x["record"] == "reach" {
			continue
		}
		delete(x, "record")
		delete(x, "dry_run")
		all = append(all, x)
	}
}

// TestCommandAndServerAgree compares what --json prints with what the server answers to the same question.
func TestCommandAndServerAgree(t *testing.T) {
	p := newInProcess(t)
	do := func(stdin string, args ...string) []byte {
		t.Helper()
		// 3: a sample is damaged on purpose, and a payload is missing.
		if code := p.run(t.Context(), stdin, args...); code != exitOK && code != exitProblems {
			t.Fatalf("%q: %d: %s", args, code, p.stderr.String())
		}
		return []byte(p.stdout.String())
	}
	do("", "import", "../../testdata/claude-code", "--format", "claude-code")
	do("", "import", "../../testdata/chatgpt/conversations.json", "--format", "chatgpt")
	do("", "new", "--id", walkID, "--title", "Walk <&> \u2028 line")
	do("", "config", "trash_grace=90m")
	large := strings.Repeat("walk ", 300_000) // above what show holds in memory
	do(`{"role":"user","content":"the harbour"}`+"\n"+`{"role":"user","content":"`+large+`"}`+"\n", "append", walkID, "--jsonl")
	do("", "branch", "fork", walkID, "alt", "--at", "1")
	do("", "branch", "fork", walkID, "gone", "--at", "1")
	do("", "branch", "rm", walkID, "gone")
	do(`{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file",`+
		`"arguments":"{\"path\":\"quay.md\",\"start_line\":3,\"end_line\":9}"}}]}}`+"\n", "append", walkID, "--branch", "alt", "--jsonl")
	do("", "moment", "add", walkID, "--type", "decision", "The harbour stays open.")
	commands := []struct {
		name, path, member string // the member of the answer with the list; empty for JSON Lines
		args               []string
	}{
		{"ls", "/contexts", "contexts", []string{"ls"}},
		{"branch ls", "/contexts/" + walkID + "/branches", "branches", []string{"branch", "ls", "--all", walkID}},
		{"trash ls", "/trash", "items", []string{"trash", "ls"}},
		{"moment ls", "/moments", "moments", []string{"moment", "ls"}},
		{"search", "/search?q=harbour", "hits", []string{"search", "harbour"}},
		{"grep", "/grep?regex=harbour", "", []string{"grep", "harbour"}},
		{"log", "/contexts/" + walkID + "/log", "changes", []string{"log", walkID}},
		{"ref ls", "/contexts/" + walkID + "/branches/alt/references", "", []string{"ref", "ls", walkID, "--branch", "alt"}},
		{"usage", "/usage", "rows", []string{"usage"}},
		{"usage by prompt", "/usage?by=prompt", "rows", []string{"usage", "--by", "prompt"}},
	}
	get := testServer(t, p.store)
	for _, c := range objects(t, do("", "--json", "ls")) {
		id := c["id"].(string)
		for _, b := range objects(t, do("", "--json", "branch", "ls", id)) {
			name := b["name"].(string)
			path := "/contexts/" + id + "/branches/" + url.PathEscape(name) + "/messages"
			for _, content := range []struct{ query, flag string }{{"", "--no-content=false"}, {"?content=none", "--no-content"}} {
				want := objects(t, do("", "--json", "show", id, "--branch", name, content.flag))
				if got := objects(t, get(path+content.query)); len(want) == 0 || !cmp.Equal(got, want) {
					t.Errorf("show %s %s %s (-command +server): %.3000s", id, name, content.flag, cmp.Diff(want, got))
				}
			}
		}
	}
	for _, c := range commands {
		t.Run(c.name, func(t *testing.T) {
			want := objects(t, do("", append([]string{"--json"}, c.args...)...))
			answer := get(c.path)
			if c.member != "" {
				var list map[string]json.RawMessage
				if err := json.Unmarshal(answer, &list); err != nil {
					t.Fatal(err)
				}
				var items []json.RawMessage
				if err := json.Unmarshal(list[c.member], &items); err != nil {
					t.Fatal(err)
				}
				answer = nil
				for _, item := range items {
					answer = append(append(answer, item...), '\n')
				}
			}
			if got := objects(t, answer); len(want) == 0 || !cmp.Equal(got, want) {
				t.Errorf("(-command +server): %.3000s", cmp.Diff(want, got))
			}
		})
	}
}
