package server

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
	"golang.org/x/oauth2"
)

// Accounts makes users of people whom an identity provider knows, and tokens for them.
type Accounts interface {
	// Ensure returns the user with an id, and makes one with this name, or a similar one that is free, if there is none. The
	// error wraps [users.ErrNotFound] if the user was removed.
	Ensure(ctx context.Context, id uuid.UUID, name string) (users.User, error)
	NewToken(ctx context.Context, name string, o users.TokenOptions) (string, users.Token, error)
}

// LoginOptions say which identity provider people sign in with, and who may.
type LoginOptions struct {
	Issuer, ClientID, ClientSecret string
	PublicURL                      string   // of the server, to which the provider sends people back
	Domains                        []string // of mail addresses that may sign in, verified by the provider; "any" for everybody
}

// loginLasts is how long a token lasts that a login made, and loginPatience how long a person may take at the provider.
const (
	loginLasts    = 12 * time.Hour
	loginPatience = 10 * time.Minute
)

// loginCookie keeps what a login needs when the provider sends the person back: so any process of the server can end it.
const loginCookie = "ctxdir-login"

// Login lets people sign in with an identity provider, by OpenID Connect: the authorization code flow with PKCE. It ends with a
// token of the server in the fragment of the page's address, as a person would paste it.
type Login struct {
	o        LoginOptions
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
	sealed   cipher.AEAD
	accounts Accounts
	now      func() time.Time
}

// pending is what the cookie has.
type pending struct {
	State, Nonce, Verifier string
	Until                  time.Time
}

// NewLogin asks the provider for its addresses and keys.
func NewLogin(ctx context.Context, all Accounts, o LoginOptions) (*Login, error) {
	if o.ClientID == "" || o.ClientSecret == "" || o.PublicURL == "" || len(o.Domains) == 0 {
		return nil, errors.New("a login needs the client's id and secret, the public URL of the server, and the domains that may sign in")
	}
	provider, err := oidc.NewProvider(ctx, o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("identity provider %s: %w", o.Issuer, err)
	}
	key, err := hkdf.Key(sha256.New, []byte(o.ClientSecret), nil, "ctxdir login cookie", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	sealed, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Login{
		o: o, accounts: all, sealed: sealed, now: time.Now,
		verifier: provider.Verifier(&oidc.Config{ClientID: o.ClientID}),
		oauth: oauth2.Config{
			ClientID: o.ClientID, ClientSecret: o.ClientSecret, Endpoint: provider.Endpoint(),
			RedirectURL: strings.TrimSuffix(o.PublicURL, "/") + "/login/back", Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
		},
	}, nil
}

// begin sends a person to the provider.
func (l *Login) begin(w http.ResponseWriter, r *http.Request) {
	p := pending{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), l.now().Add(loginPatience)}
	b, err := json.Marshal(p)
	if err != nil {
		http.Error(w, "the login failed", http.StatusInternalServerError)
		return
	}
	l.cookie(w, base64.RawURLEncoding.EncodeToString(l.sealed.Seal(nil, nil, b, nil)), int(loginPatience.Seconds()))
	to := l.oauth.AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier))
	http.Redirect(w, r, to, http.StatusFound)
}

func (l *Login) cookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: loginCookie, Value: value, Path: "/login", MaxAge: age, HttpOnly: true,
		Secure: strings.HasPrefix(l.o.PublicURL, "https:"), SameSite: http.SameSiteLaxMode,
	})
}

// errRefused is an error that the person may know.
type errRefused string

func (e errRefused) Error() string { return string(e) }

// back takes a person from the provider, and sends them to the page with a token.
func (l *Login) back(w http.ResponseWriter, r *http.Request) error {
	l.cookie(w, "", -1)
	token, err := l.token(r)
	var refused errRefused
	if errors.As(err, &refused) {
		http.Error(w, refused.Error(), http.StatusForbidden)
		return nil
	}
	if err != nil {
		http.Error(w, "the login failed; the log of the server has the reason", http.StatusBadGateway)
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, strings.TrimSuffix(l.o.PublicURL, "/")+"/#token="+token, http.StatusFound)
	return nil
}

func (l *Login) token(r *http.Request) (string, error) {
	p, ok := l.pending(r)
	if !ok || r.URL.Query().Get("state") != p.State {
		return "", errRefused("this login has expired, or began in another browser; try again")
	}
	if r.URL.Query().Get("error") != "" {
		return "", errRefused("the identity provider refused the login")
	}
	ctx, stop := context.WithTimeout(r.Context(), 30*time.Second)
	defer stop()
	got, err := l.oauth.Exchange(ctx, r.URL.Query().Get("code"), oauth2.VerifierOption(p.Verifier))
	if err != nil {
		return "", fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := got.Extra("id_token").(string)
	id, err := l.verifier.Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("verify the ID token: %w", err)
	}
	if id.Nonce != p.Nonce {
		return "", errors.New("the ID token is for another login")
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := id.Claims(&claims); err != nil {
		return "", fmt.Errorf("read the ID token: %w", err)
	}
	if !l.may(claims.Email, claims.Verified) {
		return "", errRefused("this account may not sign in here")
	}
	u, err := l.accounts.Ensure(ctx, subject(l.o.Issuer, id.Subject), claims.Email)
	if errors.Is(err, users.ErrNotFound) {
		return "", errRefused("this account was removed from the server")
	}
	if err != nil {
		return "", err
	}
	token, _, err := l.accounts.NewToken(ctx, u.Name, users.TokenOptions{Label: "login", Expires: loginLasts})
	return token, err
}

func (l *Login) pending(r *http.Request) (p pending, ok bool) {
	c, err := r.Cookie(loginCookie)
	if err != nil {
		return p, false
	}
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return p, false
	}
	if b, err = l.sealed.Open(nil, nil, b, nil); err != nil {
		return p, false
	}
	return p, json.Unmarshal(b, &p) == nil && l.now().Before(p.Until)
}

// may reports whether a mail address may sign in.
func (l *Login) may(email string, verified bool) bool {
	_, domain, ok := strings.Cut(email, "@")
	for _, d := range l.o.Domains {
		if d == "any" || ok && verified && strings.EqualFold(d, domain) {
			return true
		}
	}
	return false
}

// subject is the id of the user of an account: the same each time, and another one with another provider.
func subject(issuer, subject string) uuid.UUID {
	return uuid.NewSHA1(uuid.NewSHA1(uuid.NameSpaceURL, []byte(issuer)), []byte(subject))
}
