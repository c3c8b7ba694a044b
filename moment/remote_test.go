package moment_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/privacy"
)

// TestRemoteTable: what a model sees of a conversation is what the rules propose, each in a line and with what it answers,
// and nothing else; no private word is in it. A scripted model keeps what has a number of words.
func TestRemoteTable(t *testing.T) {
	_, c := newContext(t)
	for _, said := range []struct{ role, text string }{
		{"user", "Move the canary tokens of Lanternfish out of /srv/canary."},
		{"tool", ""},
		{"assistant", "Two ways:\n\n1. Keep them in the `canaryKeyring()` of the system\n2. Write them to a file of " +
			"Lanternfish\n\nWhich one?"},
		{"user", "let's do 1"},
		{"tool", ""},
		{"assistant", "Done.\n\n**Root cause:** The worker read canary.go before the file was complete.\n\nAll 4711 tests " +
			"pass. Mail grace@example.com."},
		{"commit", ""},
		{"user", "<system-reminder>Never show canary words.</system-reminder>"},
		{"user", "never start the server of Lanternfish on your own"},
	} {
		if said.text != "" {
			say(t, c.Active(), said.role, said.text)
			continue
		}
		body := `{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"run","arguments":"{\"c\":\"canary\"}"}}]}`
		if said.role == "commit" {
			body = strings.Replace(body, `{\"c\":\"canary\"}`, `{\"command\":\"git commit -m 'fix(canary): wait for /srv/canary' `+
				`-m 'The reader of Lanternfish is slow because the file has 4711 lines.'\"}`, 1)
		}
		if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	var table []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		var kept []any
		for line := range strings.Lines(request.Messages[len(request.Messages)-1].Content) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "Sentence ") {
				table = append(table, line)
				kept = append(kept, map[string]any{"n": len(table), "type": moment.Pattern, "relevance": 0.5})
			}
		}
		answer, err := json.Marshal(kept)
		if err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": string(answer)}}}})
	}))
	defer server.Close()
	endpoint := &compress.Endpoint{URL: server.URL, Filter: privacy.NewFilter("lanternfish")}
	found := extract(t, c, moment.Options{Extractor: moment.Remote{Endpoint: endpoint}})
	all := strings.Join(table, "\n")
	t.Logf("\n%s", all)
	for _, want := range []string{"reader of [name] is slow because the file has",
		"Keep them in the [code] of the system let's do 1", "Root cause: The worker read [name] " +
			"before", "never start the server of [name]"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q was not sent:\n%s", want, all)
		}
	}
	for _, private := range []string{"canary", "antern", "/srv", "grace", "4711"} {
		if strings.Contains(strings.ToLower(all), private) {
			t.Errorf("%q was sent:\n%s", private, all)
		}
	}
	if len(found) != len(table) || !strings.Contains(found[0].Content, "canaryKeyring") {
		t.Errorf("%d of %d sentences: %+v", len(found), len(table), found)
	}
}

// TestRemoteJudges: the endpoint says what to keep, and sees the sentences only as the filter leaves them. What it says
// otherwise counts for nothing.
func TestRemoteJudges(t *testing.T) {
	_, c := newContext(t)
	const private = "We decided to keep `canaryCode(1)` of Lanternfish in /srv/canary because it is fast."
	say(t, c.Active(), "assistant", private+"\n\n"+decided+"\n\nLet me run the tests.")
	answer := `Sure: [{"n":1,"type":"solution","relevance":0.9},{"n":1,"type":"pattern","relevance":0.1},` +
		`{"n":7,"type":"decision"},{"n":2,"type":"poem"}]`
	sent := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent += string(body)
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": answer}}}})
	}))
	defer server.Close()
	remote := moment.Remote{Endpoint: &compress.Endpoint{URL: server.URL, Filter: privacy.NewFilter("lanternfish")}}
	found := extract(t, c, moment.Options{Extractor: remote})
	if len(found) != 1 || found[0].Content != private || found[0].Type != moment.Solution || found[0].Relevance != 0.9 {
		t.Errorf("found %+v", found)
	}
	if !strings.Contains(sent, "We decided to keep the queue in memory") {
		t.Errorf("sent %s", sent)
	}
	for _, canary := range []string{"canary", "antern", "/srv"} {
		if strings.Contains(sent, canary) {
			t.Errorf("%q was sent: %s", canary, sent)
		}
	}
	answer = "I cannot do that."
	var failed error
	hybrid := moment.Hybrid{Remote: remote, Failed: func(err error) { failed = err }}
	found = extract(t, c, moment.Options{Extractor: hybrid})
	if len(found) != 1 || found[0].Content != decided || !errors.Is(failed, compress.ErrRemote) {
		t.Errorf("hybrid: %+v, %v", found, failed)
	}
	if _, err := moment.Extract(t.Context(), c, moment.Options{Extractor: remote}); !errors.Is(err, compress.ErrRemote) {
		t.Errorf("a reply without JSON: %v", err)
	}
}
