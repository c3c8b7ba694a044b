// Package vaulttest starts a server in the process of a test, which speaks the protocol of Vault's transit engine.
package vaulttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/subtle/random"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Token is the one that the server takes.
const Token = "CANARY-VAULT-TOKEN"

// Vault is a server with keys, which it makes when they are first used.
type Vault struct {
	URL      string
	Away     atomic.Bool  // every request is answered as a sealed Vault does
	Requests atomic.Int64 // so far

	mu   sync.Mutex
	keys map[string][]tink.AEAD // the versions of each; nil: it was dropped
}

// Start starts a server, until the test ends, and sets what Vault's clients read in the environment.
func Start(t *testing.T) *Vault {
	t.Helper()
	v := &Vault{keys: map[string][]tink.AEAD{}}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/transit/{what}/{name}", v.answer)
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	v.URL = h.URL
	t.Setenv("VAULT_ADDR", h.URL)
	t.Setenv("VAULT_TOKEN", Token)
	t.Setenv("VAULT_MAX_RETRIES", "0")
	return v
}

// Key is the address of a key.
func Key(name string) string { return "hcvault:///transit/keys/" + name }

// Rotate adds a version of a key.
func (v *Vault) Rotate(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(name)
}

// Drop takes all versions of a key away but the newest.
func (v *Vault) Drop(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.keys[name]
	clear(all[:len(all)-1])
}

func (v *Vault) add(name string) {
	k, err := subtle.NewAESGCM(random.GetRandomBytes(32))
	if err != nil {
		panic(err) // the size is right
	}
	v.keys[name] = append(v.keys[name], k)
}

func (v *Vault) answer(w http.ResponseWriter, r *http.Request) {
	v.Requests.Add(1)
	fail := func(status int, text string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string][]string{"errors": {text}})
	}
	var q struct {
		Plaintext  []byte `json:"plaintext"`
		Ciphertext string `json:"ciphertext"`
		Data       []byte `json:"associated_data"`
	}
	switch err := json.NewDecoder(r.Body).Decode(&q); {
	case err != nil:
		fail(http.StatusBadRequest, err.Error())
		return
	case v.Away.Load():
		fail(http.StatusServiceUnavailable, "Vault is sealed")
		return
	case r.Header.Get("X-Vault-Token") != Token:
		fail(http.StatusForbidden, "permission denied")
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	name, data := r.PathValue("name"), map[string]any{}
	switch r.PathValue("what") {
	case "encrypt":
		if v.keys[name] == nil {
			v.add(name)
		}
		n := len(v.keys[name])
		b, err := v.keys[name][n-1].Encrypt(q.Plaintext, q.Data)
		if err != nil {
			fail(http.StatusInternalServerError, err.Error())
			return
		}
		text, _ := json.Marshal(b) // base64
		data["ciphertext"] = fmt.Sprintf("vault:v%d:%s", n, strings.Trim(string(text), `"`))
	default:
		b, err := v.decrypt(name, q.Ciphertext, q.Data)
		if err != nil {
			fail(http.StatusBadRequest, err.Error())
			return
		}
		data["plaintext"] = b
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

func (v *Vault) decrypt(name, text string, ad []byte) ([]byte, error) {
	parts := strings.SplitN(text, ":", 3)
	var n int
	if _, err := fmt.Sscanf(strings.Join(parts[:min(2, len(parts))], ":"), "vault:v%d", &n); err != nil || len(parts) != 3 {
		return nil, fmt.Errorf("invalid ciphertext: no prefix")
	}
	if n < 1 || n > len(v.keys[name]) || v.keys[name][n-1] == nil {
		return nil, fmt.Errorf("ciphertext or signature version is disallowed by policy (too old)")
	}
	var b []byte
	if err := json.Unmarshal([]byte(`"`+parts[2]+`"`), &b); err != nil {
		return nil, err
	}
	return v.keys[name][n-1].Decrypt(b, ad)
}
