package server_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

func TestScopes(t *testing.T) { each(t, testScopes) }

func testScopes(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	id := k.create(k.tokens["ada"], "title", "text")
	reader := k.token("ada", users.TokenOptions{Scope: users.Read})
	if a := k.do(reader, "GET", "/v1/contexts/"+id, ""); a.status != http.StatusOK {
		t.Errorf("a token that reads: %d", a.status)
	}
	if a := k.do(reader, "POST", "/v1/contexts", `{}`); a.status != http.StatusForbidden {
		t.Errorf("a token that only reads creates a context: %d %s", a.status, a.body)
	}
	a := k.do(reader, "POST", "/v1/contexts/"+id+"/branches/main/messages", `{"role":"user","content":"x"}`)
	if a.status != http.StatusForbidden {
		t.Errorf("a token that only reads appends: %d %s", a.status, a.body)
	}
}

// TestTokenEnds revokes a token while a follower uses it.
func TestTokenEnds(t *testing.T) { each(t, testTokenEnds) }

func testTokenEnds(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	k.server.RecheckEvery(5 * time.Millisecond)
	token, made, err := k.users.NewToken(t.Context(), "ada", users.TokenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), k.url+"/v1/events", &websocket.DialOptions{ //nolint:bodyclose // the connection has it
		Subprotocols: []string{"ctxdir.v1", "ctxdir.token." + token},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.users.Revoke(t.Context(), "ada", made.ID); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, _, err = conn.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the follower of a revoked token: %v", err)
	}
	if a := k.do(token, "GET", "/v1/contexts", ""); a.status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", a.status)
	}
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts", ""); a.status != http.StatusOK {
		t.Errorf("another token of the user: %d", a.status)
	}
}

// TestRemovedUser removes a user whose store is open, and restores the user.
func TestRemovedUser(t *testing.T) { each(t, testRemovedUser) }

func testRemovedUser(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	id := k.create(k.tokens["ada"], "title", "text")
	if _, err := k.users.Remove(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id, ""); a.status != http.StatusUnauthorized {
		t.Errorf("a removed user: %d %s", a.status, a.body)
	}
	if _, err := k.users.Restore(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id, ""); a.status != http.StatusOK {
		t.Errorf("a restored user: %d %s", a.status, a.body)
	}
}

// TestIdleStores closes stores that nobody uses, and opens them again.
func TestIdleStores(t *testing.T) { each(t, testIdleStores) }

func testIdleStores(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{Idle: time.Millisecond})
	id := k.create(k.tokens["ada"], "title", "text")
	eventually(t, "no store is open", func() bool { return strings.Contains(k.metrics(), "ctxdir_stores_open 0\n") })
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id, ""); a.status != http.StatusOK {
		t.Errorf("after the store closed: %d", a.status)
	}
}

// TestMostOpen lets a server have one store open at a time.
func TestMostOpen(t *testing.T) { each(t, testMostOpen) }

func testMostOpen(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{Idle: time.Hour, MaxOpen: 1})
	for range 3 {
		for _, token := range k.tokens {
			if a := k.do(token, "GET", "/v1/contexts", ""); a.status != http.StatusOK {
				t.Errorf("with one store at a time: %d", a.status)
			}
		}
	}
	if !strings.Contains(k.metrics(), "ctxdir_stores_open 1\n") {
		t.Error(k.metrics())
	}
}

// TestManyRequestsAtOnce lets many clients of two users write while their stores close all the time.
func TestManyRequestsAtOnce(t *testing.T) { each(t, testManyRequestsAtOnce) }

func testManyRequestsAtOnce(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{Idle: time.Nanosecond, MaxOpen: 1})
	ids := map[string]string{}
	for name, token := range k.tokens {
		ids[name] = k.create(token, name, "first")
	}
	const each = 25
	var wg sync.WaitGroup
	for range 4 {
		for name, token := range k.tokens {
			wg.Go(func() {
				for range each {
					a := k.do(token, "POST", "/v1/contexts/"+ids[name]+"/branches/main/messages", `{"role":"user","content":"`+name+`"}`)
					if a.status != http.StatusCreated {
						t.Errorf("append: %d %s", a.status, a.body)
					}
				}
			})
		}
	}
	wg.Wait()
	for name, token := range k.tokens {
		a := k.do(token, "GET", "/v1/contexts/"+ids[name]+"/branches/main/messages", "")
		if n := strings.Count(a.body, `"`+name+`"`); n != 4*each {
			t.Errorf("%s has %d messages, not %d", name, n, 4*each)
		}
	}
}

// failing is a directory, or a store, that cannot be read.
type failing struct{ *users.Users }

func (failing) Ready(context.Context) error { return errors.New("CANARY-PATH is away") }

func (failing) Open(context.Context, uuid.UUID) (server.Store, error) {
	return nil, errors.New("CANARY-PATH is away")
}

func TestUnavailable(t *testing.T) { each(t, testUnavailable) }

func testUnavailable(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	s, err := server.New(failing{k.users}, failing{k.users}, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k.url = serve(t, s)
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/v1/contexts": 503} {
		a := k.do(k.tokens["ada"], "GET", path, "")
		if path == "/healthz" {
			a = k.do("", "GET", path, "")
		}
		if a.status != want || strings.Contains(a.body, "CANARY") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// TestNothingInTheClear looks for tokens in what the server keeps, and in a database for conversations: in tables, indexes and the
// log, as they are on disk.
func TestNothingInTheClear(t *testing.T) { each(t, testNothingInTheClear) }

func testNothingInTheClear(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	canaries := map[string]string{}
	for user, token := range k.tokens {
		canaries["the token of "+user], canaries["the secret of "+user] = token, token[32:]
	}
	seen, dir := false, at.dir
	id := k.create(k.tokens["ada"], "CANARY-TITLE", "CANARY-TEXT")
	if a := k.do(k.tokens["ada"], "PUT", "/v1/artifacts/CANARY-NAME", `{"plan":"CANARY-PLAN"}`); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	if at.url != "" {
		canaries["the name of an artifact"], canaries["an artifact"] = "CANARY-NAME", "CANARY-PLAN"
		canaries["a title"], canaries["a text"], canaries["an id"] = "CANARY-TITLE", "CANARY-TEXT", id
		dir = pgtest.Flushed(t)
	}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreMissing(err)
		}
		b, err := os.ReadFile(path)
		for what, canary := range canaries {
			if bytes.Contains(b, []byte(canary)) {
				t.Errorf("%s has %s", path, what)
			}
		}
		seen = seen || bytes.Contains(b, []byte(`"name":"ada"`)) || bytes.Contains(b, []byte(`"name": "ada"`))
		return ignoreMissing(err)
	})
	if err != nil || !seen {
		t.Fatal("the record of the user was not seen", err)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
