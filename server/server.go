// Package server serves the conversations of many users: each has a store, and sees nothing of the others. A request
// carries a token, which says whose it is; the store of that user then answers as package api does for one.
//
// The contract is that of package api. Programs should rely on the command ctxserver: this package may change at any time.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/server/chat"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// Directory knows the users.
type Directory interface {
	// Authorize returns what a token stands for. The error wraps [users.ErrUnauthorized].
	Authorize(ctx context.Context, token string) (users.Grant, error)
	// Owner returns the user with a name who shares projects with the user of a grant, and which ones. The error wraps
	// [users.ErrNotFound] if nobody does.
	Owner(ctx context.Context, g users.Grant, name string) (uuid.UUID, []string, error)
	// Ready returns an error as long as users and their stores cannot be read.
	Ready(ctx context.Context) error
}

// Options configure a server.
type Options struct {
	// API is for the server of each user. Its token is not used.
	API api.Options
	// Idle is how long a store stays open that nobody uses; 0 means a minute.
	Idle time.Duration
	// MaxOpen is the number of stores above which those go that nobody uses; 0 means 1,000.
	MaxOpen int
	// Login lets people sign in with an identity provider; nil for none.
	Login *Login
	// Inviting lets people with an invitation become users; nil for no invitations.
	Inviting Inviting
	// Model answers the requests of the exchange; nil for none.
	Model *chat.Model
	// MaxTokens bounds the context of such a request; 0 means [ctxdir.DefaultMaxTokens].
	MaxTokens int
	// Audit says which requests [api.Options].Log has a line for.
	Audit Audit
}

// Audit says for which requests there is a line of who did what, and when, without content.
type Audit string

// The kinds of audit.
const (
	AuditNone    Audit = "none"
	AuditChanges Audit = "changes" // requests that may change something
	AuditAll     Audit = "all"
)

// recheck is how often a request that lasts is looked at again: its token may have been revoked.
const recheck = 10 * time.Second

// Server answers requests of all users. It is an [api.Handler].
type Server struct {
	o       Options
	users   Directory
	stores  Stores
	nobody  *api.Server // before it is known whose a request is
	token   string      // between this server and those of users
	metrics *metrics
	chat    *chat.Chat
	serving sync.WaitGroup // requests
	ended   context.Context
	end     context.CancelFunc
	recheck time.Duration
	joins   tokenBucket

	mu      sync.Mutex
	tenants map[uuid.UUID]*tenant
}

// New returns a server of these users. The caller closes it.
func New(of Directory, stores Stores, o Options) (*Server, error) {
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	if o.MaxOpen <= 0 {
		o.MaxOpen = 1000
	}
	if o.API.Log == nil {
		o.API.Log = slog.New(slog.DiscardHandler)
	}
	x := &Server{
		o: o, users: of, stores: stores, token: rand.Text() + rand.Text(), recheck: recheck,
		tenants: map[uuid.UUID]*tenant{},
	}
	x.metrics = newMetrics(x.open)
	x.chat = newChat(stores, o)
	x.ended, x.end = context.WithCancel(context.Background())
	var err error
	o.API.Exchange = func(context.Context, *websocket.Conn, func(context.Context) (*search.Index, error)) {} // with no token, it is refused
	x.nobody, err = api.New(nil, o.API)
	return x, err
}

// Close ends what still runs. A store closes when its last request has ended.
func (x *Server) Close() {
	x.end()
	x.nobody.Close()
	x.chat.Close()
	x.closeIdle(0)
}

// Wait returns when no request runs any more and their stores are closed, or ctx ends. No request may begin any more.
func (x *Server) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		x.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// ServeHTTP implements [http.Handler].
func (x *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.serving.Add(1)
	defer x.serving.Done() // after the release of its store
	began := time.Now()
	x.metrics.running.Inc()
	seen := &seenResponse{ResponseWriter: w}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	r = r.WithContext(ctx)
	var a access
	defer func() { x.note(r, a.grant, seen, began) }()
	owner, r := ofOwner(r)
	if owner == "" && x.ownPath(seen, r) {
		return
	}
	token := api.RequestToken(r)
	if token == "" {
		x.nobody.ServeHTTP(seen, r)
		return
	}
	a, err := x.access(ctx, token, owner)
	switch {
	case errors.Is(err, users.ErrUnauthorized):
		x.nobody.ServeHTTP(seen, r)
		return
	case errors.Is(err, users.ErrNotFound):
		x.noSuch(seen, r)
		return
	case err != nil:
		x.unavailable(seen, r, "look for the token", err)
		return
	}
	t, err := x.acquire(ctx, a.user)
	if err != nil {
		x.unavailable(seen, r, "open the store", err)
		return
	}
	defer x.release(t)
	if owner == "" {
		t.expect(r, a.grant.Quota)
	}
	seen.failed = t.unavailable
	go x.watch(ctx, stop, token, owner, t)
	r.Header.Set("Authorization", "Bearer "+x.token)
	r = a.in(r, owner)
	t.server(a.scope).ServeHTTP(seen, r)
}

// watch ends a request whose token ends meanwhile: it expires, or is revoked. Likewise if another server took over the store.
func (x *Server) watch(ctx context.Context, end context.CancelFunc, token, owner string, t *tenant) {
	tick := time.NewTicker(x.recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, err := x.access(ctx, token, owner)
			if isOver(err) || t.store.Look(ctx) != nil && t.failed() != nil {
				end()
				return
			}
		}
	}
}

// ownPath answers what is about the server itself.
func (x *Server) ownPath(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodPost && r.URL.Path == joinPath && x.o.Inviting != nil {
		r.Pattern = "POST " + joinPath
		if err := x.users.Ready(r.Context()); errors.Is(err, ErrNotReady) {
			x.unavailable(w, r, "accept an invitation", err)
			return true
		}
		x.join(w, r)
		return true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch {
	case r.URL.Path == "/readyz":
		x.ready(w, r)
	case r.URL.Path == "/login" && x.o.Login != nil:
		x.o.Login.begin(w, r)
	case r.URL.Path == "/login/back" && x.o.Login != nil:
		if err := x.o.Login.back(w, r); err != nil {
			x.o.API.Log.Warn("a login failed", "error", err)
		}
	default:
		return false
	}
	r.Pattern = "GET " + r.URL.Path
	return true
}

func (x *Server) ready(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	if err := x.users.Ready(r.Context()); err != nil || x.ended.Err() != nil {
		x.o.API.Log.Warn("not ready", "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":"not ready"}`+"\n") // the client has the status
		return
	}
	_, _ = io.WriteString(w, `{"status":"ready"}`+"\n") // likewise
}

// unavailable answers a request that the server cannot begin to answer.
func (x *Server) unavailable(w http.ResponseWriter, r *http.Request, what string, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has left
	}
	level := slog.LevelError
	if errors.Is(err, ErrNotReady) { // it will be
		level = slog.LevelInfo
	}
	x.o.API.Log.Log(r.Context(), level, "failed to "+what, "error", err)
	api.Unavailable(w)
}
