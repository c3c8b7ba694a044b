package moment_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/privacy"
)

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
