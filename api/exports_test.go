package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
)

// TestExportIsNoPage: a server that is read-only sends files, and no browser shows one as a page of the server.
func TestExportIsNoPage(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k := serve(t, s, api.Options{ReadOnly: true}, func(*api.Server) {})
	path := "/v1/contexts/" + k.context(3) + "/export"
	for _, format := range []string{"html", "markdown", "jsonl"} {
		a := k.do(http.MethodPost, path, `{"format":"`+format+`"}`)
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "message 2") {
			t.Fatalf("%s: %s %s", format, a.Status, a.body)
		}
		disposition, policy := a.Header.Get("Content-Disposition"), a.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(disposition, "attachment; ") || !strings.HasSuffix(policy, "sandbox") ||
			a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q, %q", format, disposition, policy)
		}
	}
	if a := k.do(http.MethodPost, path+"/preview", `{"format":"html"}`); a.StatusCode != http.StatusOK {
		t.Errorf("preview: %s", a.body)
	}
	if a := k.do(http.MethodPost, path, `{"format":"openai"}`); a.problem(t) != "invalid" {
		t.Errorf("a form of another program: %s", a.Status)
	}
	if a := k.do(http.MethodPost, path, `{"format":"html"}`, "-Authorization"); a.problem(t) != "unauthorized" {
		t.Errorf("without a token: %s", a.Status)
	}
}
