package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Share lets a user read a project of another one. The record of the reader has it, so one request reads one record more.
type Share struct {
	Owner     uuid.UUID `json:"owner"`
	Name      string    `json:"name"`  // of the owner
	Since     time.Time `json:"since"` // when the owner was added: an erased account may come back with the same id, as another user
	Project   string    `json:"project"`
	CreatedAt time.Time `json:"created_at"`
}

// Given is a share as its owner sees it.
type Given struct{ Project, With string }

// maxShares bounds what is shared with one user.
const maxShares = 1000

// Share lets the user with read a project of owner. Sharing it twice is sharing it once.
func (x *Users) Share(ctx context.Context, owner, project, with string) error {
	if project == "" || len(project) > maxProject || !utf8.ValidString(project) {
		return fmt.Errorf("%w: project: expected text of 1 to %d bytes", ErrInvalid, maxProject)
	}
	if owner == with {
		return fmt.Errorf("%w: user %q has the project already", ErrInvalid, owner)
	}
	of, err := x.Find(ctx, owner)
	if err != nil {
		return err
	}
	return x.change(ctx, with, func(u *User) error {
		s := Share{of.ID, of.Name, of.CreatedAt, project, x.now().UTC().Truncate(time.Second)}
		if slices.ContainsFunc(u.Shared, s.isSame) {
			return nil
		}
		if len(u.Shared) >= maxShares {
			return fmt.Errorf("%w: %d projects are shared with user %q, the most there can be", ErrInvalid, len(u.Shared), with)
		}
		u.Shared = append(u.Shared, s)
		return nil
	})
}

func (s *Share) isSame(as Share) bool {
	return s.Owner == as.Owner && s.Since.Equal(as.Since) && s.Project == as.Project
}

// Unshare ends a share with the next request. The error wraps [ErrNotFound] if there is none. The owner may have been removed.
func (x *Users) Unshare(ctx context.Context, owner, project, with string) error {
	return x.change(ctx, with, func(u *User) error {
		n := len(u.Shared)
		u.Shared = slices.DeleteFunc(u.Shared, func(s Share) bool { return s.Name == owner && s.Project == project })
		if len(u.Shared) == n {
			return fmt.Errorf("project %q of user %q, shared with user %q: %w", project, owner, with, ErrNotFound)
		}
		return nil
	})
}

// Given lists what a user shares with others. It reads the records of all users.
func (x *Users) Given(ctx context.Context, owner string) (all []Given, err error) {
	found, err := x.List(ctx)
	if err != nil {
		return nil, err
	}
	of, err := named(found, owner, nil)
	if err != nil {
		return nil, err
	}
	for _, u := range found {
		for _, s := range u.Shared {
			if s.Owner == of.ID && s.Since.Equal(of.CreatedAt) {
				all = append(all, Given{s.Project, u.Name})
			}
		}
	}
	return all, nil
}

// Owner returns the user with a name who shares projects with the user of a grant, and which ones. The error wraps
// [ErrNotFound], whether there is no such user, or nothing is shared.
func (x *Users) Owner(ctx context.Context, g Grant, name string) (owner uuid.UUID, projects []string, err error) {
	for _, s := range g.Shared {
		if s.Name != name || projects != nil && s.Owner != owner {
			continue
		}
		if projects == nil {
			u, err := x.all.read(ctx, present, s.Owner)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return uuid.Nil, nil, err
			}
			if !u.CreatedAt.Equal(s.Since) {
				continue
			}
		}
		owner, projects = s.Owner, append(projects, s.Project)
	}
	if projects == nil {
		return uuid.Nil, nil, fmt.Errorf("project of user %q: %w", name, ErrNotFound)
	}
	return owner, projects, nil
}
