package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server"
	"github.com/go-jose/go-jose/v4"
)

// provider is an identity provider with one person, who always agrees.
type provider struct {
	*testing.T
	url    string
	key    *rsa.PrivateKey
	claims map[string]any
	codes  map[string]url.Values // of the request for each code

}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{T: t, key: key, codes: map[string]url.Values{}, claims: map[string]any{}}
	mux := http.NewServeMux()
	send := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{
			"issuer": p.url, "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		send(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q, code := r.URL.Query(), rand.Text()
		p.codes[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?code="+code+"&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		asked := p.codes[r.FormValue("code")]
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if asked == nil || id != "client" || secret != "secret" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		send(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.sign(asked.Get("nonce"))})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *provider) sign(nonce string) string {
	p.Helper()
	claims := map[string]any{
		"iss": p.url, "aud": "client", "sub": "ada-1", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "nonce": nonce,
		"email": "ada@example.org", "email_verified": true,
	}
	for name, value := range p.claims {
		claims[name] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}, nil)
	if err != nil {
		p.Fatal(err)
	}
	b, err := json.Marshal(claims)
	if err != nil {
		p.Fatal(err)
	}
	signed, err := signer.Sign(b)
	if err != nil {
		p.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.Fatal(err)
	}
	return text
}

// TestLogin signs in as a browser does, and uses the token.
func TestLogin(t *testing.T) { each(t, testLogin) }

func testLogin(t *testing.T, at backend) {
	p := newProvider(t)
	k := newKit(t, at, server.Options{})
	// The public URL is known once the server listens.
	var handler http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	login, err := server.NewLogin(t.Context(), k.users, server.LoginOptions{
		Issuer: p.url, ClientID: "client", ClientSecret: "secret", PublicURL: s.URL, Domains: []string{"example.org"},
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := server.New(k.users, k.stores, server.Options{Login: login, API: api.Options{PublicURL: s.URL, Login: "/login"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	handler, k.url = x, s.URL
	// signIn returns the answer at the end, and the token in its address.
	signIn := func(change func(c *http.Client)) (a answer, token string) {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if _, found, ok := strings.Cut(r.URL.Fragment, "token="); ok {
				token = found
				return http.ErrUseLastResponse
			}
			return nil
		}}
		if change != nil {
			change(c)
		}
		return k.sendBy(c, "/login"), token
	}
	if a := k.do("", "GET", "/healthz", ""); !strings.Contains(a.body, `"login":"/login"`) {
		t.Errorf("/healthz: %s", a.body)
	}
	a, token := signIn(nil)
	if token == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := k.create(token, "title", "text")
	_, again := signIn(nil)
	if a := k.do(again, "GET", "/v1/contexts/"+id, ""); again == token || a.status != http.StatusOK {
		t.Errorf("signed in again: %d", a.status)
	}
	u, err := k.users.Find(t.Context(), "ada@example.org")
	if err != nil || u.Tokens[0].ExpiresAt == nil || u.Tokens[0].Label != "login" {
		t.Errorf("%+v %v", u, err)
	}
	p.claims["sub"] = "another-1" // with the same address
	_, other := signIn(nil)
	if a := k.do(other, "GET", "/v1/contexts/"+id, ""); a.status != http.StatusNotFound {
		t.Errorf("another account sees the conversation: %d", a.status)
	}
	for what, claims := range map[string]map[string]any{
		"an address of another domain": {"email": "ada@example.com"}, "an unverified address": {"email_verified": false},
		"no address": {"email": ""}, "another audience": {"aud": "somebody"}, "an expired token": {"exp": 1}, "another nonce": {"nonce": "x"},
		"a domain that only ends like it": {"email": "ada@not-example.org"}, "another issuer": {"iss": "https://example.org"},
	} {
		p.claims = claims
		if a, token := signIn(nil); token != "" || a.status != http.StatusForbidden && a.status != http.StatusBadGateway {
			t.Errorf("%s: %d %s, token %q", what, a.status, a.body, token)
		}
	}
	p.claims = map[string]any{}
	if a, token := signIn(func(c *http.Client) { c.Jar = nil }); token != "" || a.status != http.StatusForbidden {
		t.Errorf("another browser: %d %s", a.status, a.body)
	}
	if _, err := k.users.Remove(t.Context(), "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	if a, token := signIn(nil); token != "" || a.status != http.StatusForbidden || !strings.Contains(a.body, "removed") {
		t.Errorf("a removed user: %d %s", a.status, a.body)
	}
	if a := k.do("", "GET", "/login/back?code=x&state=y", ""); a.status != http.StatusForbidden {
		t.Errorf("no login: %d", a.status)
	}
	for _, o := range []server.LoginOptions{
		{Issuer: p.url}, {Issuer: p.url + "/none", ClientID: "a", ClientSecret: "b", PublicURL: s.URL, Domains: []string{"any"}},
	} {
		if _, err := server.NewLogin(t.Context(), k.users, o); err == nil {
			t.Errorf("%+v", o)
		}
	}

}

// sendBy gets a path with another client.
func (k *kit) sendBy(c *http.Client, path string) answer {
	k.Helper()
	r, err := http.NewRequestWithContext(k.Context(), http.MethodGet, k.url+path, nil)
	if err != nil {
		k.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		k.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := io.Copy(&b, resp.Body); err != nil {
		k.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b.String()}
}
