package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/users"
)

// TestLimitedJoin: somebody comes with an invitation for one project, and somebody who only reads.
func TestLimitedJoin(t *testing.T) { each(t, testLimitedJoin) }

func testLimitedJoin(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	join := func(name string, o users.TokenOptions) (token string) {
		t.Helper()
		secret, _, err := k.users.Invite(t.Context(), time.Hour, o)
		must(t, err)
		a := k.do("", "POST", "/join", `{"invitation":"`+secret+`","name":"`+name+`"}`)
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated {
			t.Fatal(a.status, a.body)
		}
		return made.Token
	}
	cleo := join("cleo", users.TokenOptions{Project: "/harbour"})
	k.create(k.token("cleo", users.TokenOptions{}), "elsewhere", "text")
	k.create(cleo, "at the harbour", "text")
	if a := k.do(cleo, "GET", "/v1/contexts", ""); !strings.Contains(a.body, "at the harbour") || strings.Contains(a.body, "elsewhere") {
		t.Errorf("a token of one project: %d %s", a.status, a.body)
	}
	dan := join("dan", users.TokenOptions{Scope: users.Read})
	if a := k.do(dan, "GET", "/v1/contexts", ""); a.status != http.StatusOK {
		t.Errorf("reading: %d %s", a.status, a.body)
	}
	if a := k.do(dan, "POST", "/v1/contexts", `{"title":"title"}`); a.status != http.StatusForbidden {
		t.Errorf("writing: %d %s", a.status, a.body)
	}
}

// TestJoin makes users of people with invitations.
func TestJoin(t *testing.T) { each(t, testJoin) }

func testJoin(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{Audit: server.AuditAll})
	secret, _, err := k.users.Invite(t.Context(), time.Hour, users.TokenOptions{})
	must(t, err)
	join := func(secret, name string) answer {
		t.Helper()
		return k.do("", "POST", "/join", `{"invitation":"`+secret+`","name":"`+name+`"}`)
	}
	if a := join(secret, "ada"); a.status != http.StatusConflict {
		t.Errorf("a name that is taken: %d %s", a.status, a.body)
	}
	if a := join(secret, "a b"); a.status != http.StatusBadRequest {
		t.Errorf("an invalid name: %d %s", a.status, a.body)
	}
	wrong := join(secret[:60]+"AAAA", "cleo")
	if wrong.status != http.StatusNotFound {
		t.Errorf("a wrong secret: %d %s", wrong.status, wrong.body)
	}
	a := join(secret, "cleo")
	var made struct{ Name, Token string }
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated || made.Name != "cleo" {
		t.Fatalf("join: %d %s", a.status, a.body)
	}
	k.create(made.Token, "of cleo", "of cleo")
	if a := join(secret, "dan"); a.status != wrong.status || a.body != wrong.body {
		t.Errorf("a used invitation: %d %s instead of %s", a.status, a.body, wrong.body)
	}
	next, _, err := k.users.Invite(t.Context(), time.Hour, users.TokenOptions{})
	must(t, err)
	many := 0
	for range 40 {
		if a := join("nonsense", "ada"); a.status == http.StatusTooManyRequests {
			many++
		} else if a.body != wrong.body {
			t.Errorf("a wrong secret with a name that is taken: %d %s", a.status, a.body)
		}
	}
	if many == 0 {
		t.Error("wrong invitations are answered without a bound")
	}
	if a := join(next, "dan"); a.status != http.StatusCreated {
		t.Errorf("a right invitation after many wrong ones: %d %s", a.status, a.body)
	}
	form := k.do("", "POST", "/join", "")
	if form.status != http.StatusBadRequest {
		t.Errorf("without a body: %d", form.status)
	}
	for what, text := range map[string]string{"the log": k.log.String(), "metrics": k.metrics()} {
		for _, canary := range []string{secret, secret[32:], next, made.Token, "cleo"} {
			if strings.Contains(text, canary) {
				t.Errorf("%s have %q", what, canary)
			}
		}
	}
}
