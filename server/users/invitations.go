package users

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Invitation lets whoever has its secret become a user, once. The id of that user is its own.
type Invitation struct {
	Sum       []byte    `json:"sum"` // SHA-256 of the secret
	ExpiresAt time.Time `json:"expires_at"`

	// Of the token that accepting makes: see [TokenOptions].
	Scope   Scope         `json:"scope"`
	Project string        `json:"project,omitempty"`
	Lasts   time.Duration `json:"lasts,omitempty"` // in nanoseconds
}

// maxInvitations bounds the invitations that nobody has accepted, and maxInvited how long one lasts.
const (
	maxInvitations = 1000
	maxInvited     = 365 * 24 * time.Hour
)

// Invite makes an invitation, from which comes a token with these limits. Only the caller ever has the secret. The user has the id of
// the invitation, and no name yet.
func (x *Users) Invite(ctx context.Context, lasts time.Duration, of TokenOptions) (secret string, u User, err error) {
	if lasts <= 0 || lasts > maxInvited {
		return "", u, fmt.Errorf("%w: an invitation lasts at most a year", ErrInvalid)
	}
	if of.Scope == "" {
		of.Scope = Write
	}
	if err := of.check(); err != nil {
		return "", u, err
	}
	now := x.now()
	u = User{ID: uuid.New(), CreatedAt: now.UTC().Truncate(time.Second)}
	secret, t := newToken(u.ID, TokenOptions{Expires: lasts}, now)
	u.Invitation = &Invitation{t.Sum, *t.ExpiresAt, of.Scope, of.Project, of.Expires}
	if err := x.dropInvitations(ctx); err != nil {
		return "", u, err
	}
	return secret, u, x.all.alone(ctx, func(w writer) error {
		all, err := w.list(invited)
		if err == nil && len(all) >= maxInvitations {
			err = fmt.Errorf("%w: %d invitations are open, the most there can be", ErrInvalid, len(all))
		}
		if err != nil {
			return err
		}
		return w.invite(&u)
	})
}

// dropInvitations forgets those that have expired, each in a transaction of its own.
func (x *Users) dropInvitations(ctx context.Context) error {
	all, err := x.all.list(ctx, invited)
	if err != nil {
		return err
	}
	now := x.now()
	for i := range all {
		if !all[i].Invitation.over(now) {
			continue
		}
		if err := x.Uninvite(ctx, all[i].ID); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// over reports whether nobody can accept an invitation any more.
func (i *Invitation) over(now time.Time) bool { return i == nil || !now.Before(i.ExpiresAt) }

// Invitations returns the invitations that are open, the first that ends first.
func (x *Users) Invitations(ctx context.Context) ([]User, error) {
	all, err := x.all.list(ctx, invited)
	now := x.now()
	all = slices.DeleteFunc(all, func(u User) bool { return u.Invitation.over(now) })
	slices.SortFunc(all, func(a, b User) int { return a.Invitation.ExpiresAt.Compare(b.Invitation.ExpiresAt) })
	return all, err
}

// Uninvite ends an invitation that nobody has accepted. The error wraps [ErrNotFound].
func (x *Users) Uninvite(ctx context.Context, id uuid.UUID) error {
	return x.all.alone(ctx, func(w writer) error {
		if _, err := x.all.read(ctx, invited, id); err != nil {
			return err
		}
		return w.uninvite(id)
	})
}

// Accept makes a user with a name and a token, and ends the invitation. The error wraps [ErrUnauthorized] for a secret that is
// unknown, used or expired; only with a right one does it wrap [ErrInvalid] or [ErrExists] for the name.
func (x *Users) Accept(ctx context.Context, secret, name string) (token string, u User, err error) {
	id, _, text, ok := parse(secret)
	if !ok {
		return "", u, ErrUnauthorized
	}
	if _, err := x.invitation(ctx, id, text); err != nil { // before anybody has to wait
		return "", u, err
	}
	if err := CheckName(name); err != nil {
		return "", u, err
	}
	err = x.all.alone(ctx, func(w writer) error {
		if u, err = x.invitation(ctx, id, text); err != nil {
			return err
		}
		if err := free(w, name); err != nil {
			return err
		}
		var t Token
		now := x.now()
		i := u.Invitation
		token, t = newToken(id, TokenOptions{Scope: cmp.Or(i.Scope, Write), Project: i.Project, Label: "invitation", Expires: i.Lasts}, now)
		u.Name, u.CreatedAt, u.Tokens = name, now.UTC().Truncate(time.Second), []Token{t}
		return w.accept(&u)
	})
	return token, u, err
}

// invitation returns an open invitation.
func (x *Users) invitation(ctx context.Context, id uuid.UUID, secret []byte) (User, error) {
	u, err := x.all.read(ctx, invited, id)
	if errors.Is(err, ErrNotFound) {
		return u, ErrUnauthorized
	}
	if err != nil {
		return u, err
	}
	sum := sha256.Sum256(secret)
	if u.Invitation.over(x.now()) || subtle.ConstantTimeCompare(u.Invitation.Sum, sum[:]) != 1 {
		return u, ErrUnauthorized
	}
	return u, nil
}
