package vault_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/server/internal/vaulttest"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/ctxdir/ctxdir/server/vault"
	"github.com/tink-crypto/tink-go/v2/tink"
)

func open(t *testing.T, name string) tink.AEAD {
	t.Helper()
	master, err := vault.Open(vaulttest.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	k, err := master()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"hcvault:///transit/keys/ctxserver":                           "",
		"hcvault://vault.example.org:8200/transit/keys/ctxserver":     "",
		"hcvault://vault.example.org/team/transit/keys/ctxserver":     "",
		"hcvault://TOKEN@vault.example.org/transit/keys/ctxserver":    "set $VAULT_TOKEN",
		"hcvault://vault.example.org/transit/keys/ctxserver?token=x":  "expected the path of a key",
		"hcvault://vault.example.org/transit/keys/":                   "expected the path of a key",
		"hcvault://vault.example.org/transit/ctxserver":               "expected the path of a key",
		"hcvault://vault.example.org":                                 "expected the path of a key",
		"https://vault.example.org:8200/v1/transit/encrypt/ctxserver": "expected an address such as hcvault://",
	} {
		_, err := vault.Open(address)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "TOKEN@")) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestFaults tells a wrong key from a Vault that cannot be asked.
func TestFaults(t *testing.T) {
	v := vaulttest.Start(t)
	k := open(t, "one")
	sealed, err := k.Encrypt([]byte("text"), []byte("ad"))
	if err != nil {
		t.Fatal(err)
	}
	decrypt := func(what string, k tink.AEAD, ad string, isMaster, unreachable bool) {
		t.Helper()
		b, err := k.Decrypt(sealed, []byte(ad))
		if err == nil || len(b) > 0 || errors.Is(err, pgfs.ErrMaster) != isMaster || vault.IsUnreachable(err) != unreachable {
			t.Errorf("%s: %q %v", what, b, err)
		}
	}
	if b, err := k.Decrypt(sealed, []byte("ad")); string(b) != "text" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	decrypt("other associated data", k, "x", false, false)
	if _, err := open(t, "two").Encrypt([]byte("text"), nil); err != nil {
		t.Fatal(err)
	}
	decrypt("another key", open(t, "two"), "ad", false, false)
	v.Away.Store(true)
	decrypt("a sealed Vault", k, "ad", true, true)
	if _, err := k.Encrypt([]byte("text"), nil); !errors.Is(err, pgfs.ErrMaster) || !vault.IsUnreachable(err) {
		t.Errorf("encrypting with a sealed Vault: %v", err)
	}
	v.Away.Store(false)
	t.Setenv("VAULT_ADDR", "http://127.0.0.1:1")
	decrypt("nobody there", open(t, "one"), "ad", true, true)
	t.Setenv("VAULT_ADDR", v.URL+"/nowhere")
	decrypt("something else there", open(t, "one"), "ad", true, false)
}

// TestTokenFile: another program may renew the token in a file.
func TestTokenFile(t *testing.T) {
	vaulttest.Start(t)
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv("VAULT_TOKEN", "old")
	t.Setenv("VAULT_TOKEN_FILE", file)
	master, err := vault.Open(vaulttest.Key("one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := master(); !errors.Is(err, pgfs.ErrMaster) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	encrypt := func(token string) error {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := master()
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.Encrypt([]byte("text"), nil)
		return err
	}
	if err := encrypt("expired"); !errors.Is(err, pgfs.ErrMaster) || vault.IsUnreachable(err) || strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired token: %v", err)
	}
	if err := encrypt(vaulttest.Token); err != nil {
		t.Errorf("a new token: %v", err)
	}
}
