package server

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/server/users"
)

// Inviting makes users of people who have an invitation.
type Inviting interface {
	// Accept returns the token of the user that it makes. The error wraps [users.ErrUnauthorized] unless the secret is that of an
	// open invitation; and then [users.ErrInvalid] or [users.ErrExists] for a name.
	Accept(ctx context.Context, secret, name string) (string, users.User, error)
}

// joinPath is where people accept an invitation.
const joinPath = "/join"

// joinRequest is its body.
type joinRequest struct {
	Invitation string `json:"invitation"`
	Name       string `json:"name"`
}

// maxJoin bounds the body, in bytes.
const maxJoin = 4 << 10

// Of requests with a wrong secret, joinBurst are answered at once, and then one each joinEvery; others hear only that there
// are too many. A right one always counts.
const (
	joinBurst = 20
	joinEvery = time.Second
)

// tokenBucket bounds answers.
type tokenBucket struct {
	mu   sync.Mutex
	full time.Time // when all joinBurst would be allowed again
}

func (b *tokenBucket) allowed(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full.Before(now) {
		b.full = now
	}
	if b.full.Sub(now) > (joinBurst-1)*joinEvery {
		return false
	}
	b.full = b.full.Add(joinEvery)
	return true
}

// join makes a user of whoever has an invitation. The body is JSON, which a page of another origin cannot send unasked.
func (x *Server) join(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	answer := func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the client has left, or has it
	}
	problem := func(status int, detail string) { answer(status, map[string]string{"detail": detail}) }
	var q joinRequest
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJoin))
	d.DisallowUnknownFields()
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" || d.Decode(&q) != nil {
		problem(http.StatusBadRequest, `expected Content-Type: application/json and {"invitation": …, "name": …}`)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), 30*time.Second)
	defer stop()
	token, u, err := x.o.Inviting.Accept(ctx, q.Invitation, q.Name)
	switch {
	case errors.Is(err, users.ErrUnauthorized) && x.joins.allowed(time.Now()):
		problem(http.StatusNotFound, "the invitation is unknown, used or expired; ask for another one")
	case errors.Is(err, users.ErrUnauthorized):
		problem(http.StatusTooManyRequests, "too many wrong invitations; try again later")
	case errors.Is(err, users.ErrInvalid):
		problem(http.StatusBadRequest, "a name has 1 to 64 letters, digits and . _ @ + -, the first a letter or digit")
	case errors.Is(err, users.ErrExists):
		problem(http.StatusConflict, "the name is taken; choose another one")
	case err != nil:
		x.o.API.Log.Error("failed to accept an invitation", "error", err)
		problem(http.StatusServiceUnavailable, "the server cannot answer now; try again")
	default:
		answer(http.StatusCreated, map[string]string{"name": u.Name, "token": token})
	}
}
