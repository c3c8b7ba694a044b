// Package users knows whose conversations a server keeps, and which tokens stand for whom. A token itself is nowhere: what
// is kept tells only whether one is right.
package users

import (
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// User is a person, or a program, with conversations of their own.
type User struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"` // no other user has it
	CreatedAt time.Time `json:"created_at"`
	Quota     int64     `json:"quota,omitempty"` // how much room the store may take, in bytes; 0 for no bound
	Tokens    []Token   `json:"tokens,omitempty"`
	Shared    []Share   `json:"shared,omitempty"` // by others

	Invitation *Invitation `json:"invitation,omitempty"` // of somebody who is no user yet
}

// Token is what is kept of a token.
type Token struct {
	ID        string     `json:"id"`  // among the tokens of the user
	Sum       []byte     `json:"sum"` // SHA-256 of the secret
	Scope     Scope      `json:"scope"`
	Project   string     `json:"project,omitempty"` // it sees and makes contexts of this project alone; empty for all
	Label     string     `json:"label,omitempty"`   // what it is for
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// Scope is what a token permits.
type Scope string

// The scopes.
const (
	Read  Scope = "read"  // whatever changes nothing
	Write Scope = "write" // everything
)

// Grant is what a token stands for.
type Grant struct {
	User    uuid.UUID
	Token   string // its id
	Scope   Scope
	Project string    // the only one; empty for all
	Expires time.Time // zero if it does not
	Quota   int64     // of the user, see [User]
	Shared  []Share   // by others; nothing for a token of one project
}

// Errors, wrapped by those that functions return.
var (
	ErrUnauthorized = errors.New("the token is unknown or has expired")
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("already exists")
	ErrInvalid      = errors.New("invalid")
)

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// CheckName rejects what is not the name of a user. The error wraps [ErrInvalid].
func CheckName(s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%w: user name %q: expected 1 to 64 letters, digits and . _ @ + -, the first a letter or digit", ErrInvalid, s)
	}
	return nil
}

// maxProject bounds the name of a project, in bytes.
const maxProject = 4096

// TokenOptions say what a new token is for.
type TokenOptions struct {
	Scope   Scope         // Write if empty
	Project string        // the only one that the token permits, at most 4,096 bytes; empty for all
	Label   string        // at most 100 bytes
	Expires time.Duration // from now; 0 for never
}

func (o TokenOptions) check() error {
	switch {
	case o.Scope != Read && o.Scope != Write:
		return fmt.Errorf("%w: scope %q: expected read or write", ErrInvalid, o.Scope)
	case len(o.Project) > maxProject || !utf8.ValidString(o.Project):
		return fmt.Errorf("%w: project: expected at most %d bytes of text", ErrInvalid, maxProject)
	case len(o.Label) > 100:
		return fmt.Errorf("%w: the label has %d bytes, more than 100", ErrInvalid, len(o.Label))
	case o.Expires < 0:
		return fmt.Errorf("%w: the token would have expired already", ErrInvalid)
	}
	return nil
}
