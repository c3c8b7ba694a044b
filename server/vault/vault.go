// Package vault has the master key of a server in the transit engine of HashiCorp Vault, or of OpenBao: that encrypts and
// decrypts the keys of users, and nobody ever sees the master key.
package vault

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/hashicorp/vault/api"
	"github.com/tink-crypto/tink-go-hcvault/v2/integration/hcvault"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Scheme begins the address of a key: hcvault://HOST:PORT/transit/keys/NAME. Without a host, $VAULT_ADDR counts.
const Scheme = "hcvault://"

// tokenFile names a file with the token, which something else may renew: it is read for each request.
const tokenFile = "VAULT_TOKEN_FILE"

// Open returns the key at an address. It does not connect. Token, certificates and namespace are from the environment, as for
// Vault's own command: $VAULT_TOKEN, $VAULT_CACERT, $VAULT_NAMESPACE and so on. Errors of the key wrap [pgfs.ErrMaster], unless Vault says
// that what it should decrypt is not of this key.
func Open(address string) (pgfs.Master, error) {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, Scheme) {
		return nil, errors.New("expected an address such as hcvault://vault.example.org:8200/transit/keys/NAME")
	}
	path := u.EscapedPath()
	switch {
	case u.User != nil:
		return nil, errors.New("credentials do not belong into the address of a key: set $VAULT_TOKEN")
	case u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(path, "/"):
		return nil, fmt.Errorf("%s: expected the path of a key, such as /transit/keys/NAME", address)
	}
	c := api.DefaultConfig()
	if c.Error != nil {
		return nil, fmt.Errorf("the environment for Vault: %w", c.Error)
	}
	if u.Host != "" {
		c.Address, c.AgentAddress = "https://"+u.Host, ""
	}
	if os.Getenv(api.EnvVaultClientTimeout) == "" {
		c.Timeout = 10 * time.Second // a request of a user waits
	}
	client, err := api.NewClient(c)
	if err != nil {
		return nil, fmt.Errorf("the environment for Vault: %w", err)
	}
	aead, err := hcvault.NewAEAD(path, client.Logical())
	if err != nil {
		return nil, fmt.Errorf("%s: expected the path of a key, such as /transit/keys/NAME", address)
	}
	return func() (tink.AEAD, error) {
		if file := os.Getenv(tokenFile); file != "" {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", pgfs.ErrMaster, tokenFile, err)
			}
			client.SetToken(strings.TrimSpace(string(b)))
		}
		return key{aead}, nil
	}, nil
}

// key is the master key.
type key struct{ tink.AEAD }

func (k key) Encrypt(plain, ad []byte) ([]byte, error) {
	b, err := k.AEAD.Encrypt(plain, ad)
	if err != nil {
		err = fmt.Errorf("%w: %w", pgfs.ErrMaster, err)
	}
	return b, err
}

func (k key) Decrypt(sealed, ad []byte) ([]byte, error) {
	b, err := k.AEAD.Decrypt(sealed, ad)
	if err == nil && len(b) == 0 { // Vault's client takes some errors for it, and keys are never empty
		err = errors.New("the answer of Vault has no text")
	}
	var r *api.ResponseError
	if err == nil || errors.As(err, &r) && r.StatusCode == http.StatusBadRequest {
		return b, err
	}
	return nil, fmt.Errorf("%w: %w", pgfs.ErrMaster, err)
}

// IsUnreachable reports whether an error says that Vault does not answer, or is sealed, so that another try may help.
func IsUnreachable(err error) bool {
	if !errors.Is(err, pgfs.ErrMaster) {
		return false
	}
	var r *api.ResponseError
	if errors.As(err, &r) {
		return r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusTooManyRequests
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF)
}
