package main

import (
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/vaulttest"
)

// TestVault moves the key of a database from a file to Vault, rotates it there, and moves it back. A conversation stays readable.
func TestVault(t *testing.T) {
	_, url := pgtest.Empty(t)
	v := vaulttest.Start(t)
	g := newGuide(t)
	const begin = `
serve() { ctxserver & until curl -fs http://127.0.0.1:7434/readyz; do sleep 0.1; done; }
end() { kill %%; wait %%; }
api() { curl -fs -H "Authorization: Bearer $(cat token)" -H 'Content-Type: application/json' "$@"; }
look() { serve; api http://127.0.0.1:7434/v1/contexts; end; }
`
	const vaultKey = "export CTXSERVER_KEY=hcvault:///transit/keys/one\n"
	run := func(more string) string {
		t.Helper()
		g.text = ""
		return g.runMore(t, url, begin+strings.ReplaceAll(more, "trap", "trap - EXIT"))
	}
	expect := func(out, want string) {
		t.Helper()
		if !strings.Contains(out, want) || strings.Contains(out, vaulttest.Token) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	expect(run(`
ctxserver key new master.key
export CTXSERVER_KEY=master.key
ctxserver user add ada
ctxserver user token ada >token
serve
api -d '{"title":"Harbour plan"}' http://127.0.0.1:7434/v1/contexts
end
ctxserver key move hcvault:///transit/keys/one
ctxserver key move hcvault:///transit/keys/one # as after an interruption
trap
if ctxserver; then exit 1; fi
`), "master.key is another key; start with the one that was used before, nothing has been changed")
	expect(run(vaultKey+"look\nctxserver config | grep '^key'\ntrap"), `"title":"Harbour plan"`)
	v.Rotate("one")
	expect(run(vaultKey+"ctxserver key rotate\ntrap\nif ctxserver key drop; then exit 1; fi"),
		"set its min_decryption_version after ctxserver key rotate")
	v.Drop("one")
	expect(run(vaultKey+"look\ntrap"), `"title":"Harbour plan"`)
	v.Away.Store(true)
	expect(run(vaultKey+"trap\nif ctxserver key rotate; then exit 1; fi"), "Look whether Vault answers and is unsealed")
	expect(run(vaultKey+"trap\nif timeout 3 ctxserver; then exit 1; fi"), "trying again")
	v.Away.Store(false)
	t.Setenv("VAULT_TOKEN", "CANARY-OTHER")
	expect(run(vaultKey+"trap\nif ctxserver; then exit 1; fi"), "has the key hcvault:///transit/keys/one for $VAULT_TOKEN")
	t.Setenv("VAULT_TOKEN", vaulttest.Token)
	expect(run(vaultKey+"trap\nif CTXSERVER_KEY=hcvault:///transit/keys/two ctxserver; then exit 1; fi"),
		"hcvault:///transit/keys/two is another key")
	expect(run(vaultKey+"ctxserver key move master.key\nexport CTXSERVER_KEY=master.key\nlook\ntrap"), `"title":"Harbour plan"`)
}
