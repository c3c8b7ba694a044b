package users

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A token is 48 bytes in base64url: the id of the user, that of the token, and a secret. So the record of a token is found
// without an index, and whoever guesses has to guess a user and a token first.
const (
	idBytes     = 8
	secretBytes = 24
	tokenBytes  = 16 + idBytes + secretBytes
)

var encoding = base64.RawURLEncoding

// newToken returns a token, which is shown once, and what is kept of it.
func newToken(user uuid.UUID, o TokenOptions, now time.Time) (token string, t Token) {
	b := make([]byte, tokenBytes)
	copy(b, user[:])
	_, _ = rand.Read(b[len(user):]) // it never fails
	sum := sha256.Sum256(b[len(user)+idBytes:])
	t = Token{ID: tokenID(b), Sum: sum[:], Scope: o.Scope, Project: o.Project, Label: o.Label, CreatedAt: now.UTC().Truncate(time.Second)}
	if o.Expires > 0 {
		at := t.CreatedAt.Add(o.Expires)
		t.ExpiresAt = &at
	}
	return encoding.EncodeToString(b), t
}

// tokenID is the id of a token, in hex so that it never looks like a flag.
func tokenID(b []byte) string {
	const digits = "0123456789abcdef"
	id := make([]byte, 0, 2*idBytes)
	for _, x := range b[16 : 16+idBytes] {
		id = append(id, digits[x>>4], digits[x&15])
	}
	return string(id)
}

// parse returns the parts of a token.
func parse(token string) (user uuid.UUID, id string, secret []byte, ok bool) {
	b, err := encoding.DecodeString(token)
	if err != nil || len(b) != tokenBytes || len(token) != encoding.EncodedLen(tokenBytes) {
		return uuid.Nil, "", nil, false
	}
	return uuid.UUID(b[:16]), tokenID(b), b[16+idBytes:], true
}

// grant returns what a token of a user stands for.
func (u *User) grant(id string, secret []byte, now time.Time) (Grant, error) {
	sum := sha256.Sum256(secret)
	for i := range u.Tokens {
		t := &u.Tokens[i]
		if t.ID != id || subtle.ConstantTimeCompare(t.Sum, sum[:]) != 1 || t.expired(now) {
			continue
		}
		g := Grant{User: u.ID, Token: t.ID, Scope: t.Scope, Project: t.Project, Quota: u.Quota}
		if t.Project == "" {
			g.Shared = u.Shared
		}
		if t.ExpiresAt != nil {
			g.Expires = *t.ExpiresAt
		}
		return g, nil
	}
	return Grant{}, ErrUnauthorized
}

func (t *Token) expired(now time.Time) bool { return t.ExpiresAt != nil && !now.Before(*t.ExpiresAt) }

// dropExpired forgets tokens that expired a month ago: until then they are listed, if there is room.
func (u *User) dropExpired(now time.Time) {
	if len(u.Tokens) < maxTokens {
		now = now.AddDate(0, -1, 0)
	}
	u.Tokens = slices.DeleteFunc(u.Tokens, func(t Token) bool { return t.expired(now) })
}
