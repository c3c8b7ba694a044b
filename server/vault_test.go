package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/internal/vaulttest"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/ctxdir/ctxdir/server/vault"
	"github.com/jackc/pgx/v5"
)

func inVault(t *testing.T, name string) backend {
	t.Helper()
	at := newDatabase(t)
	var err error
	at.master, err = vault.Open(vaulttest.Key(name))
	must(t, err)
	return at
}

// TestKeyInVault counts what Vault is asked: for the keys of a user when the store opens, never for a row. While it does not answer,
// open stores go on, and others get 503.
func TestKeyInVault(t *testing.T) {
	v := vaulttest.Start(t)
	k := newKit(t, inVault(t, "one"), server.Options{Idle: time.Hour})
	ada, bob := k.tokens["ada"], k.tokens["bob"]
	id := k.create(ada, "title", "text")
	const perStore = 4 // two keys are made, and read
	if n := v.Requests.Load(); n != 2*perStore {
		t.Errorf("Vault was asked %d times for the check and a new user", n)
	}
	before := v.Requests.Load()
	for range 20 {
		if a := k.do(ada, "POST", messages(id), `{"role":"user","content":"more"}`); a.status != http.StatusCreated {
			t.Fatal(a.status, a.body)
		}
	}
	if a := k.do(ada, "GET", messages(id), ""); strings.Count(a.body, "more") != 20 {
		t.Error(a.status, a.body)
	}
	if n := v.Requests.Load(); n != before {
		t.Errorf("Vault was asked %d times for 20 messages", n-before)
	}
	v.Away.Store(true)
	if a := k.do(ada, "GET", messages(id), ""); a.status != http.StatusOK {
		t.Errorf("an open store: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/v1/contexts", "/v1/contexts/" + id} {
		if a := k.do(bob, "GET", path, ""); a.status != http.StatusServiceUnavailable || strings.Contains(a.body, "ault") {
			t.Errorf("%s of another store: %d %s", path, a.status, a.body)
		}
	}
	v.Away.Store(false)
	k.create(bob, "title", "text")
	if strings.Contains(k.log.String(), vaulttest.Token) {
		t.Error("the log has the token of Vault")
	}
}

// TestNoVault starts on an empty database, and on one in use, while Vault does not answer, refuses the token, or has another key.
func TestNoVault(t *testing.T) {
	v := vaulttest.Start(t)
	at := inVault(t, "one")
	prepare := func(name string) (*server.Database, error) {
		t.Helper()
		master, err := vault.Open(vaulttest.Key(name))
		must(t, err)
		d, err := server.NewDatabase(t.Context(), at.url, server.DatabaseOptions{Master: master})
		must(t, err)
		t.Cleanup(func() { _ = d.Close() })
		return d, d.Prepare(t.Context())
	}
	keys := func() (n int) {
		t.Helper()
		c, err := pgx.Connect(t.Context(), at.url)
		must(t, err)
		defer func() { _ = c.Close(t.Context()) }()
		must(t, c.QueryRow(t.Context(), `SELECT count(*) FROM keys`).Scan(&n))
		return n
	}
	for _, want := range []int{0, 1} {
		v.Away.Store(true)
		d, err := prepare("one")
		if !errors.Is(err, pgfs.ErrMaster) || errors.Is(err, pgfs.ErrKey) || !server.IsUnreachable(err) {
			t.Errorf("Vault is sealed: %v", err)
		}
		if d.Ready(t.Context()) == nil {
			t.Error("it is ready while Vault is sealed")
		}
		v.Away.Store(false)
		t.Setenv("VAULT_TOKEN", "another")
		if _, err := prepare("one"); !errors.Is(err, pgfs.ErrMaster) || errors.Is(err, pgfs.ErrKey) || server.IsUnreachable(err) {
			t.Errorf("another token: %v", err)
		}
		t.Setenv("VAULT_TOKEN", vaulttest.Token)
		if n := keys(); n != want {
			t.Errorf("%d keys were written", n-want)
		}
		if want == 0 {
			_, err := prepare("one")
			must(t, err)
		}
	}
	if _, err := prepare("two"); !errors.Is(err, pgfs.ErrKey) || errors.Is(err, pgfs.ErrMaster) || server.IsUnreachable(err) {
		t.Errorf("another key: %v", err)
	}
	if n := keys(); n != 1 {
		t.Errorf("%d keys", n)
	}
}
