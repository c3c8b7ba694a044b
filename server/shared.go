package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// sharedPath is below which the API and the page show what a user shares: /shared/NAME/v1/contexts, and so on.
const sharedPath = "/shared/"

// ofOwner returns the name of the owner in the path of a request, and the request as the server of the owner gets it. The name
// is empty for any other path.
func ofOwner(r *http.Request) (string, *http.Request) {
	escaped, below := strings.CutPrefix(r.URL.EscapedPath(), sharedPath)
	if !below {
		return "", r
	}
	part, rest, _ := strings.Cut(escaped, "/")
	owner, err := url.PathUnescape(part)
	path, pathErr := url.PathUnescape("/" + rest)
	if err != nil || pathErr != nil || users.CheckName(owner) != nil {
		return "", r
	}
	to := *r
	at := *r.URL
	at.Path, at.RawPath = path, "/"+rest
	to.URL = &at
	return owner, &to
}

// access is what a request may do.
type access struct {
	grant users.Grant
	user  uuid.UUID // whose store it is
	scope users.Scope

	limited  bool
	projects []string
}

// access returns what a token may do in its own store, or in that of an owner with a name. The error wraps
// [users.ErrUnauthorized], or [users.ErrNotFound] if that owner shares nothing with the user.
func (x *Server) access(ctx context.Context, token, owner string) (a access, err error) {
	g, err := x.users.Authorize(ctx, token)
	if err != nil {
		return a, err
	}
	a = access{grant: g, user: g.User, scope: g.Scope}
	if g.Project != "" {
		a.limited, a.projects = true, []string{g.Project}
	}
	if owner != "" {
		a.scope, a.limited = users.Read, true
		a.user, a.projects, err = x.users.Owner(ctx, g, owner)
	}
	return a, err
}

// in returns a request as it may see the store.
func (a *access) in(r *http.Request, owner string) *http.Request {
	ctx := r.Context()
	if a.limited {
		ctx = api.LimitTo(ctx, a.projects...)
	}
	if owner == "" {
		ctx = api.WithShared(ctx, sharedWith(a.grant.Shared))
	}
	return r.WithContext(ctx)
}

// sharedWith says who shares what, as the page shows it.
func sharedWith(all []users.Share) (by []api.Shared) {
	for _, s := range all {
		i := slices.IndexFunc(by, func(b api.Shared) bool { return b.Owner == s.Name })
		if i < 0 {
			i = len(by)
			by = append(by, api.Shared{Owner: s.Name})
		}
		by[i].Projects = append(by[i].Projects, s.Project)
	}
	return by
}

// noSuch answers as to a path that the server does not have.
func (x *Server) noSuch(w http.ResponseWriter, r *http.Request) {
	to := *r
	to.URL = &url.URL{Path: sharedPath}
	x.nobody.ServeHTTP(w, &to)
}

// isOver reports whether an error says that a request has no access any more.
func isOver(err error) bool {
	return errors.Is(err, users.ErrUnauthorized) || errors.Is(err, users.ErrNotFound)
}
