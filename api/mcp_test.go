package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// withToken adds the token to requests.
type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestMCP: agents reach the tools over HTTP with the token, and nobody else does.
func TestMCP(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	agents := mcp.New(s, mcp.Options{})
	t.Cleanup(func() { _ = agents.Close() })
	k := serve(t, s, api.Options{MCP: agents.Handler()}, func(*api.Server) {})
	id := k.context(3)
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + k.host + "/mcp", HTTPClient: &http.Client{Transport: withToken{}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "read", Arguments: json.RawMessage(`{"context":"` + id + `"}`)})
	if err != nil || r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "total: 3") {
		t.Errorf("%+v, %v", r, err)
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	accept := "Accept: application/json, text/event-stream"
	if a := k.do("POST", "/mcp", list, accept); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `"recall"`) {
		t.Errorf("%s: %.300s", a.Status, a.body)
	}
	for want, headers := range map[int][]string{
		http.StatusUnauthorized:       {accept, "-Authorization"},
		http.StatusForbidden:          {accept, "Origin: http://evil.test"},
		http.StatusMisdirectedRequest: {accept, "Host: evil.test"},
	} {
		if a := k.do("POST", "/mcp", list, headers...); a.StatusCode != want || strings.Contains(a.body, "recall") {
			t.Errorf("%v: %s: %.300s", headers, a.Status, a.body)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if a := k.do(method, "/mcp", "", accept); a.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, a.Status)
		}
	}
	if a := newKit(t, api.Options{}).do("POST", "/mcp", list, accept); a.StatusCode != http.StatusNotFound {
		t.Errorf("without: %s", a.Status)
	}
}
