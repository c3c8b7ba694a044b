package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server"
	"github.com/google/uuid"
	"go.yaml.in/yaml/v4"
)

// operations returns the operations of the contract, as the server has it.
func (k *kit) operations() (all [][2]string) {
	k.Helper()
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal([]byte(k.do("", "GET", "/v1/openapi.yaml", "").body), &doc); err != nil {
		k.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method := range item {
			if m := strings.ToUpper(method); m != "PARAMETERS" && m != "SUMMARY" && m != "DESCRIPTION" {
				all = append(all, [2]string{m, path})
			}
		}
	}
	return all
}

// TestUsersAreApart sends a request to each operation with the ids of somebody else. The answer is that to ids which nobody has,
// but for the ids in it, and nothing of the other one changes.
func TestUsersAreApart(t *testing.T) { each(t, testUsersAreApart) }

func testUsersAreApart(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{Audit: server.AuditAll})
	ada, bob := k.tokens["ada"], k.tokens["bob"]
	id := k.create(ada, "CANARY-TITLE", "CANARY-TEXT")
	own := k.create(bob, "of bob", "of bob")
	if a := k.do(ada, "PUT", "/v1/artifacts/plan.txt", `{"title":"CANARY-TITLE"}`); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	message := k.do(ada, "GET", "/v1/contexts/"+id+"/branches/main/messages", "")
	var m struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(message.body, "\n", 2)[0]), &m); err != nil {
		t.Fatal(err)
	}
	state := func() string {
		all := k.do(ada, "GET", "/v1/contexts", "").body + k.do(ada, "GET", "/v1/trash", "").body
		return all + k.do(ada, "GET", "/v1/contexts/"+id, "").body + k.do(ada, "GET", "/v1/contexts/"+id+"/log", "").body +
			k.do(ada, "GET", "/v1/artifacts", "").body + k.do(ada, "GET", "/v1/artifacts/plan.txt", "").body
	}
	before := state()
	tried := 0
	for _, op := range k.operations() {
		if op[1] == "/v1/sync" || op[1] == "/v1/events" {
			continue // of a whole store; see the tests of sync
		}
		sum := strings.Repeat("ab", 32)
		ask := func(context, message string) string {
			path := strings.NewReplacer("{context}", context, "{branch}", "main", "{message}", message, "{id}", message, "{item}", context,
				"{sum}", sum, "{moment}", message, "{name}", "plan.txt").Replace(op[1])
			body := ""
			if op[0] == http.MethodPost || op[0] == http.MethodPut || op[0] == http.MethodPatch {
				body = `{"context":"` + context + `","id":"` + message + `","items":["` + context + `"],"query":"CANARY","budget":1000}`
			}
			a := k.do(bob, op[0], path, body)
			if strings.Contains(a.body, "CANARY-T") {
				t.Errorf("%s %s tells what the conversation of another user has: %s", op[0], op[1], a.body)
			}
			text := strings.NewReplacer(context, "CONTEXT", message, "MESSAGE").Replace(a.body)
			return http.StatusText(a.status) + " " + text
		}
		tried++
		got, want := ask(id, m.ID), ask(uuid.NewString(), uuid.NewString())
		if strings.Contains(op[1], "{context}") && got != want {
			t.Errorf("%s %s tells somebody else's ids from none: %s instead of %s", op[0], op[1], got, want)
		}
		if strings.Contains(op[1], "{context}") && !strings.HasPrefix(got, "Not Found") && !strings.HasPrefix(got, "Bad Request") {
			t.Errorf("%s %s with an id of somebody else: %s", op[0], op[1], got)
		}
	}
	if after := state(); after != before {
		t.Errorf("requests of bob changed what ada has:\n%s\n%s", before, after)
	}
	if tried < 40 {
		t.Errorf("only %d operations", tried)
	}
	if a := k.do(bob, "GET", "/v1/contexts", ""); strings.Contains(a.body, id) || !strings.Contains(a.body, own) {
		t.Errorf("bob lists %s", a.body)
	}
	for what, text := range map[string]string{"the log": k.log.String(), "metrics": k.metrics()} {
		for _, secret := range []string{"CANARY", id, m.ID, ada, bob, `"ada"`, "of bob"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s have %q", what, secret)
			}
		}
	}
	if !strings.Contains(k.log.String(), `"operation":"GET /v1/contexts"`) || !strings.Contains(k.metrics(), `operation="GET /v1/contexts"`) {
		t.Errorf("neither audit nor metrics: %s", k.log)
	}
}

// TestNobody sends requests with no token, and with wrong ones: they get what needs none.
func TestNobody(t *testing.T) { each(t, testNobody) }

func testNobody(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	wrong := []string{"", "nonsense", strings.Repeat("x", 64), k.tokens["ada"][:63] + "_", k.tokens["ada"] + "A", strings.Repeat("A", 64)}
	for _, op := range k.operations() {
		path := strings.NewReplacer("{context}", uuid.NewString(), "{branch}", "main").Replace(op[1])
		for _, token := range wrong[:2] {
			a := k.do(token, op[0], path, "")
			if public := path == "/healthz" || path == "/docs" || path == "/v1/openapi.yaml"; public {
				if a.status != http.StatusOK {
					t.Errorf("%s %s: %d", op[0], path, a.status)
				}
			} else if a.status != http.StatusUnauthorized && a.status != http.StatusTooManyRequests {
				t.Errorf("%s %s with token %q: %d %s", op[0], path, token, a.status, a.body)
			}
		}
	}
	for _, token := range wrong {
		if a := k.do(token, "GET", "/v1/contexts", ""); a.status != http.StatusUnauthorized && a.status != http.StatusTooManyRequests {
			t.Errorf("token %q: %d", token, a.status)
		}
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/docs", "/search"} {
		if a := k.do("", "GET", path, ""); a.status != http.StatusOK || a.header.Get("X-Content-Type-Options") == "" && path != "/readyz" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts", ""); a.status != http.StatusOK {
		t.Errorf("the right token after wrong ones: %d", a.status)
	}
	if _, err := api.New(nil, api.Options{}); err != nil {
		t.Error(err)
	}
}
