package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/api"
)

// TestGuard sends what strangers and other pages can send, to an operation that reads and to one that writes.
func TestGuard(t *testing.T) {
	k := newKit(t, api.Options{PublicURL: "https://notes.example"})
	port := k.host[strings.LastIndexByte(k.host, ':'):]
	tests := []struct {
		name    string
		headers []string
		status  int
		code    string
	}{
		{"token", nil, 0, ""},
		{"no token", []string{"-Authorization"}, 401, "unauthorized"},
		{"wrong token", []string{"Authorization: Bearer " + strings.Repeat("x", 32)}, 401, "unauthorized"},
		{"beginning of the token", []string{"Authorization: Bearer " + token[:16]}, 401, "unauthorized"},
		{"another scheme", []string{"Authorization: Basic " + token}, 401, "unauthorized"},
		{"token as a cookie", []string{"-Authorization", "Cookie: token=" + token}, 401, "unauthorized"},
		{"token as a subprotocol", []string{"-Authorization", "Sec-WebSocket-Protocol: ctxdir.v1, ctxdir.token." + token}, 0, ""},
		{"rebound name", []string{"Host: evil.test"}, 421, "misdirected"},
		{"rebound name with the port", []string{"Host: evil.test" + port}, 421, "misdirected"},
		{"name that begins like ours", []string{"Host: localhost.evil.test"}, 421, "misdirected"},
		{"name that ends like ours", []string{"Host: evil.localhost"}, 421, "misdirected"},
		{"address of another machine", []string{"Host: 192.0.2.7"}, 421, "misdirected"},
		{"no address", []string{"Host: 0.0.0.0"}, 421, "misdirected"},
		{"localhost", []string{"Host: localhost" + port}, 0, ""},
		{"localhost behind a tunnel", []string{"Host: LOCALHOST:9000"}, 0, ""},
		{"IPv6", []string{"Host: [::1]:7433"}, 0, ""},
		{"public name", []string{"Host: Notes.example"}, 0, ""},
		{"public name with another port", []string{"Host: notes.example:444"}, 421, "misdirected"},
		{"foreign origin", []string{"Origin: https://evil.test"}, 403, "cross_origin"},
		{"null origin", []string{"Origin: null"}, 403, "cross_origin"},
		{"origin with another port", []string{"Origin: http://127.0.0.1:1"}, 403, "cross_origin"},
		{"own origin", []string{"Origin: http://" + k.host}, 0, ""},
		{"public origin", []string{"Host: notes.example", "Origin: https://notes.example"}, 0, ""},
		{"cross-site", []string{"Sec-Fetch-Site: cross-site"}, 403, "cross_origin"},
		{"same site, other port", []string{"Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:1"}, 403, "cross_origin"},
		{"same origin", []string{"Sec-Fetch-Site: same-origin"}, 0, ""},
		{"typed address", []string{"Sec-Fetch-Site: none"}, 0, ""},
		{"foreign origin without a token", []string{"-Authorization", "Origin: https://evil.test"}, 403, "cross_origin"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, op := range []struct {
				method, path, body string
				status             int
			}{{"GET", "/v1/contexts", "", 200}, {"POST", "/v1/contexts", "{}", 201}} {
				a := k.do(op.method, op.path, op.body, test.headers...)
				want := test.status
				if want == 0 {
					want = op.status
				}
				if a.StatusCode != want {
					t.Errorf("%s: %s, want %d: %s", op.method, a.Status, want, a.body)
				}
				if test.code != "" && a.problem(t) != test.code {
					t.Errorf("%s: %s", op.method, a.body)
				}
			}
		})
	}
}

// TestEveryOperationNeedsTheToken sends a request to each operation without a token, and with a wrong one.
func TestEveryOperationNeedsTheToken(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		k := newKit(t, api.Options{ReadOnly: readOnly})
		id := k.context(1)
		for _, op := range api.Operations() {
			path := strings.NewReplacer("{context}", id, "{branch}", "main", "{$}", "").Replace(op.Path)
			switch a := k.do(op.Method, path, "", "-Authorization"); {
			case op.Public && a.StatusCode != http.StatusOK:
				t.Errorf("%s %s: %s", op.Method, op.Path, a.Status)
			case op.Public && strings.Contains(a.body, id):
				t.Errorf("%s %s tells of a context", op.Method, op.Path)
			case !op.Public && a.StatusCode != http.StatusUnauthorized:
				t.Errorf("%s %s without a token: %s", op.Method, op.Path, a.Status)
			}
			a := k.do(op.Method, path, "", "Authorization: Bearer "+strings.Repeat("y", 32))
			if limited := a.StatusCode == http.StatusTooManyRequests; !op.Public && a.StatusCode != http.StatusUnauthorized && !limited {
				t.Errorf("%s %s with a wrong token: %s", op.Method, op.Path, a.Status)
			}
			if !op.Writes || !readOnly {
				continue
			}
			if a := k.do(op.Method, path, "{}"); a.StatusCode != http.StatusForbidden || a.problem(t) != "read_only" {
				t.Errorf("%s %s of a read-only server: %s", op.Method, op.Path, a.Status)
			}
		}
	}
}

func TestWrongTokens(t *testing.T) {
	k := newKit(t, api.Options{})
	counts := map[int]int{}
	for i := range 200 {
		counts[k.do("GET", "/v1/contexts", "", fmt.Sprintf("Authorization: Bearer %032d", i)).StatusCode]++
	}
	if counts[401] < 20 || counts[429] < 100 || counts[401]+counts[429] != 200 {
		t.Errorf("answers to wrong tokens: %v", counts)
	}
	if a := k.do("GET", "/v1/contexts", ""); a.StatusCode != http.StatusOK {
		t.Errorf("the right token after many wrong ones: %s", a.Status)
	}
}

// TestHeaders compares the headers that keep a browser from running, framing or leaking what the server sends.
func TestHeaders(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(1)
	for _, path := range []string{
		"/", "/docs", "/v1/openapi.yaml", "/v1/contexts", "/v1/contexts/" + id + "/branches/main/messages", "/v1/none", "/none",
	} {
		h := k.do("GET", path, "").Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
	}
}

func TestPaths(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(1)
	head := " HTTP/1.1\r\nHost: " + k.host + "\r\nAuthorization: Bearer " + token + "\r\nConnection: close\r\n\r\n"
	for _, path := range []string{
		"/v1/contexts/../../etc/passwd", "/v1/contexts/%2e%2e/%2e%2e/etc/passwd", "/v1//contexts",
		"/v1/contexts/" + id + "/branches/%2e%2e/messages",
		"/v1/contexts/" + id + "/branches/..%2f..%2f/messages", "/v1/contexts/" + id + "/branches/a%00b/messages", "/v1/contexts/" + id + "/",
		"/v1/contexts/" + strings.Repeat("a", 30_000),
		"/v1/contexts/" + id + "/branches/" + strings.Repeat("%ff", 9000) + "/messages",
		"/v1/contexts/" + id + "/branches/main/messages/..", "/v1/contexts/*",
		"/v1/contexts/" + id + "/branches/main/messages/x/payloads/..%2f..",
	} {
		if line := k.raw("GET " + path + head); !strings.HasPrefix(line, "HTTP/1.1 4") {
			t.Errorf("%.60s: %s", path, line)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "TRACE", "X\x01", "PROPFIND"} {
		if line := k.raw(method + " /v1/contexts" + head); !strings.HasPrefix(line, "HTTP/1.1 40") {
			t.Errorf("%q: %s", method, line)
		}
	}
	if a := k.do("PUT", "/v1/contexts", "{}"); a.problem(t) != "method" || a.Header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("%s %s %v", a.Status, a.body, a.Header)
	}
	if a := k.do("GET", "/v1/context", ""); a.problem(t) != "no_operation" {
		t.Errorf("%s %s", a.Status, a.body)
	}
}
