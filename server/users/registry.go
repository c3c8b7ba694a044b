package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// maxTokens bounds the tokens of a user.
const maxTokens = 200

// Users are the users of a server.
type Users struct {
	all records
	now func() time.Time
}

// records keep users, in one of three places: those that are there, removed ones, and those who are invited.
type records interface {
	// read returns a user. The error wraps [ErrNotFound].
	read(ctx context.Context, in place, id uuid.UUID) (User, error)
	list(ctx context.Context, in place) ([]User, error)
	// alone runs f while nobody else changes anything. What f writes is durable when alone returns.
	alone(ctx context.Context, f func(w writer) error) error
	ready(ctx context.Context) error
	close() error
}

// writer changes records, for whoever is alone.
type writer interface {
	list(in place) ([]User, error)
	add(u *User) error
	replace(u *User) error
	move(id uuid.UUID, from, to place) error
	// erase removes a removed user for good, with everything that is kept for them.
	erase(id uuid.UUID) error
	invite(u *User) error
	uninvite(id uuid.UUID) error
	// accept makes an invitation the user that u says.
	accept(u *User) error
}

type place string

const (
	present place = "users"
	removed place = "removed"
	invited place = "invited"
)

// Close ends the use of the records.
func (x *Users) Close() error { return x.all.close() }

// Ready returns an error as long as users cannot be read.
func (x *Users) Ready(ctx context.Context) error { return x.all.ready(ctx) }

// Authorize returns what a token stands for. The error wraps [ErrUnauthorized].
func (x *Users) Authorize(ctx context.Context, token string) (Grant, error) {
	id, of, secret, ok := parse(token)
	if !ok {
		return Grant{}, ErrUnauthorized
	}
	u, err := x.all.read(ctx, present, id)
	if errors.Is(err, ErrNotFound) {
		return Grant{}, ErrUnauthorized
	}
	if err != nil {
		return Grant{}, err
	}
	return u.grant(of, secret, x.now())
}

// List returns the users, ordered by name.
func (x *Users) List(ctx context.Context) ([]User, error) { return x.list(ctx, present) }

// Removed returns the users that were removed, ordered by name.
func (x *Users) Removed(ctx context.Context) ([]User, error) { return x.list(ctx, removed) }

func (x *Users) list(ctx context.Context, in place) ([]User, error) {
	all, err := x.all.list(ctx, in)
	slices.SortFunc(all, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Find returns the user with a name. The error wraps [ErrNotFound].
func (x *Users) Find(ctx context.Context, name string) (User, error) {
	all, err := x.all.list(ctx, present)
	return named(all, name, err)
}

// named returns the user with a name. The error wraps [ErrNotFound], unless it is err.
func named(all []User, name string, err error) (User, error) {
	if err != nil {
		return User{}, err
	}
	i := slices.IndexFunc(all, func(u User) bool { return u.Name == name })
	if i < 0 {
		return User{}, fmt.Errorf("user %q: %w", name, ErrNotFound)
	}
	return all[i], nil
}

// free returns an error that wraps [ErrExists] if a user has the name.
func free(w writer, name string) error {
	all, err := w.list(present)
	if _, err = named(all, name, err); errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("user %q %w", name, ErrExists)
}

// Add makes a user. The error wraps [ErrExists] if the name is taken.
func (x *Users) Add(ctx context.Context, name string) (u User, err error) {
	if err := CheckName(name); err != nil {
		return u, err
	}
	u = User{ID: uuid.New(), Name: name, CreatedAt: x.now().UTC().Truncate(time.Second)}
	return u, x.all.alone(ctx, func(w writer) error {
		if err := free(w, name); err != nil {
			return err
		}
		return w.add(&u)
	})
}

// Ensure returns the user with an id, and makes one if there is none: with this name, or one like it that is valid and free.
// The error wraps [ErrNotFound] if the user was removed.
func (x *Users) Ensure(ctx context.Context, id uuid.UUID, name string) (u User, err error) {
	if u, err = x.all.read(ctx, present, id); !errors.Is(err, ErrNotFound) {
		return u, err
	}
	err = x.all.alone(ctx, func(w writer) error {
		for _, in := range []place{present, removed} {
			all, err := w.list(in)
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(all, func(u User) bool { return u.ID == id }); i >= 0 {
				if u = all[i]; in == removed {
					return fmt.Errorf("user %q was removed: %w", u.Name, ErrNotFound)
				}
				return nil
			}
		}
		if CheckName(name) != nil || free(w, name) != nil {
			name = "user-" + id.String()
		}
		u = User{ID: id, Name: name, CreatedAt: x.now().UTC().Truncate(time.Second)}
		return w.add(&u)
	})
	return u, err
}

// Remove takes a user away with all conversations, which stay until they are deleted for good. The tokens count no more.
func (x *Users) Remove(ctx context.Context, name string) (u User, err error) {
	return x.move(ctx, name, present, removed)
}

// Restore brings a removed user back. The error wraps [ErrExists] if another one has the name now.
func (x *Users) Restore(ctx context.Context, name string) (u User, err error) {
	return x.move(ctx, name, removed, present)
}

func (x *Users) move(ctx context.Context, name string, from, to place) (u User, err error) {
	err = x.all.alone(ctx, func(w writer) error {
		all, err := w.list(from)
		if u, err = named(all, name, err); err == nil && to == present {
			err = free(w, name)
		}
		if err != nil {
			return err
		}
		return w.move(u.ID, from, to)
	})
	return u, err
}

// Erase removes a removed user for good, with conversations and keys. Nothing brings them back.
func (x *Users) Erase(ctx context.Context, name string) (u User, err error) {
	err = x.all.alone(ctx, func(w writer) error {
		all, err := w.list(removed)
		if u, err = named(all, name, err); err != nil {
			return err
		}
		return w.erase(u.ID)
	})
	return u, err
}

// SetQuota bounds how much room the store of a user may take, in bytes; 0 for no bound.
func (x *Users) SetQuota(ctx context.Context, name string, bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("%w: a quota of %d bytes", ErrInvalid, bytes)
	}
	return x.change(ctx, name, func(u *User) error {
		u.Quota = bytes
		return nil
	})
}

// NewToken makes a token of a user. Only the caller ever has it.
func (x *Users) NewToken(ctx context.Context, name string, o TokenOptions) (token string, t Token, err error) {
	if o.Scope == "" {
		o.Scope = Write
	}
	if err := o.check(); err != nil {
		return "", t, err
	}
	err = x.change(ctx, name, func(u *User) error {
		now := x.now()
		if u.dropExpired(now); len(u.Tokens) >= maxTokens {
			return fmt.Errorf("%w: user %q has %d tokens, the most there can be", ErrInvalid, name, len(u.Tokens))
		}
		token, t = newToken(u.ID, o, now)
		u.Tokens = append(u.Tokens, t)
		return nil
	})
	return token, t, err
}

// Revoke ends a token of a user, by its id. The error wraps [ErrNotFound].
func (x *Users) Revoke(ctx context.Context, name, id string) error {
	return x.change(ctx, name, func(u *User) error {
		n := len(u.Tokens)
		if u.Tokens = slices.DeleteFunc(u.Tokens, func(t Token) bool { return t.ID == id }); len(u.Tokens) == n {
			return fmt.Errorf("token %q of user %q: %w", id, name, ErrNotFound)
		}
		return nil
	})
}

func (x *Users) change(ctx context.Context, name string, change func(u *User) error) error {
	return x.all.alone(ctx, func(w writer) error {
		all, err := w.list(present)
		u, err := named(all, name, err)
		if err == nil {
			err = change(&u)
		}
		if err != nil {
			return err
		}
		return w.replace(&u)
	})
}
