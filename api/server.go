// Package api serves a store over HTTP: it gives programs in every language what Go programs have. They append durably,
// read ranges, fork, commit, search and follow.
//
//	server, err := api.New(store, api.Options{Token: token})
//	listener, err := api.Listen("127.0.0.1:7433")
//	err = server.Serve(ctx, listener, nil)
//
// The file openapi.yaml is the contract: paths, parameters, bodies and problems. The server sends it at
// /v1/openapi.yaml. docs/API.md has an example of each operation.
//
// The server trusts only clients with the token, and no web page: see docs/API.md, "Security". No request names
// a path of the file system, and the log has no id, name or text of the store.
//
// What clients see is the contract of version 1. The Go API may change with any minor version; CHANGELOG.md says how.
package api

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/search"
	"github.com/klauspost/compress/gzhttp"
)

// Options configure a server.
type Options struct {
	Token     string // required; see [Token]
	ReadOnly  bool   // answer 403 to each request that would change the store
	PublicURL string // how others reach the server, such as https://notes.example, if not by its address
	Version   string // of the program, for /healthz
	Login     string // the path where people sign in with an account; empty if there is none
	// MaxBody bounds the body of a request, in bytes; 0 means 256 MiB.
	MaxBody int64
	// Full says that the store may not grow: requests that would add something get a 507, and others still remove. It may be nil.
	Full func() bool
	// MCP answers POST /mcp, as [github.com/ctxdir/ctxdir/mcp.Server.Handler] does, behind the same checks of tokens, hosts and
	// origins as all other requests; nil if there is none.
	MCP http.Handler
	// Exchange serves /v1/exchange; nil if there is none.
	Exchange Exchange
	// Files has the files of the store, for GET /v1/disk; nil if they are those of its folder.
	Files fs.FS
	// Page has the files of the page that people see; nil for none. Package web has one.
	Page fs.FS
	// Log receives a line for each request that failed in the server, without ids, names or texts; may be nil.
	Log *slog.Logger
}

// Exchange serves the WebSocket /v1/exchange of package exchange after its upgrade, until one side leaves. index returns the
// search index of the store, which stays open.
type Exchange func(ctx context.Context, conn *websocket.Conn, index func(ctx context.Context) (*search.Index, error))

// Server serves a store. It is an [http.Handler]; [Server.Serve] adds bounds on connections and time.
type Server struct {
	store whole
	root  string
	o     Options
	guard *guard
	mux   *http.ServeMux
	table map[string]*operation // by the pattern of mux
	ended context.Context       // cancelled when the server ends
	end   context.CancelFunc

	bounds    bounds
	feeds     feeds
	index     sharedIndex
	followers atomic.Int64
	front     http.HandlerFunc    // the page; nil for none
	onEnd     func(*http.Request) // for tests; may be nil
}

// maxBody is the default of [Options].MaxBody.
const maxBody = 256 << 20

// ServeHTTP implements [http.Handler].
func (x *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if fault == http.ErrAbortHandler { //nolint:errorlint // the value itself is the sign
			panic(fault)
		}
		x.o.Log.Error("panic", "method", r.Method, "operation", r.Pattern, "stack", string(debug.Stack()))
		problem(codeInternal, "the server failed; its log has the details").write(w)
	}()
	protect(w.Header())
	if p := x.refused(r); p != nil {
		x.fail(w, r, p, began)
		return
	}
	h, pattern := x.mux.Handler(r)
	if pattern == "" {
		x.fail(w, r, noOperation(h, w, r), began)
		return
	}
	x.mux.ServeHTTP(w, r)
}

// protect sets the headers of every response. What the server sends is data: no browser runs it, frames it or lets
// another origin read it.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// refused says why no operation may see a request.
func (x *Server) refused(r *http.Request) *Problem {
	if p := x.guard.host(r); p != nil {
		return p
	}
	// The mux would answer with a redirection.
	if at := r.URL.EscapedPath(); at != clean(at) {
		return problem(codeNoOperation, "the path has an empty part, or a part . or ..")
	}
	return nil
}

func clean(at string) string {
	c := path.Clean("/" + at)
	if strings.HasSuffix(at, "/") && c != "/" {
		c += "/"
	}
	return c
}

// noOperation is the answer to a request that no pattern matches: the mux knows which methods the path has.
func noOperation(h http.Handler, w http.ResponseWriter, r *http.Request) *Problem {
	answer := &headersOnly{h: http.Header{}}
	h.ServeHTTP(answer, r)
	if allowed := answer.h.Get("Allow"); answer.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allowed)
		return problem(codeMethod, "method %s is not allowed; use %s", method(r), allowed)
	}
	return problem(codeNoOperation, "unknown path; see /docs")
}

// method is the method of a request, if it is a usual one.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "of this name"
}

// headersOnly keeps the status and the headers of a response.
type headersOnly struct {
	h      http.Header
	status int
}

func (w *headersOnly) Header() http.Header         { return w.h }
func (w *headersOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *headersOnly) WriteHeader(status int)      { w.status = status }

// run runs an operation.
func (x *Server) run(op *operation, w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if p := x.denied(op, r); p != nil {
		x.fail(w, r, p, began)
		return
	}
	if x.onEnd != nil {
		defer x.onEnd(r)
	}
	patience := x.bounds.of(r).patience
	serve := func(w http.ResponseWriter, r *http.Request) {
		answer := &response{ResponseWriter: w, patience: patience}
		if err := op.serve(x, answer, r); err != nil {
			x.failed(answer, r, err, began)
		}
	}
	if op.upgrades {
		serve(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, &patientBody{r.Body, http.NewResponseController(w), patience}, x.limit(op))
	ctx, stop := context.WithTimeout(r.Context(), op.timeout())
	defer stop()
	compressed(http.HandlerFunc(serve)).ServeHTTP(w, r.WithContext(ctx))
}

func (x *Server) full() bool { return x.o.Full != nil && x.o.Full() }

func (x *Server) limit(op *operation) int64 {
	if op.large {
		return x.o.MaxBody
	}
	return min(maxDocument, x.o.MaxBody)
}

// denied says why a request may not have an operation.
func (x *Server) denied(op *operation, r *http.Request) *Problem {
	if op.public {
		return nil
	}
	if p := x.guard.origin(r); p != nil {
		return p
	}
	if p := x.guard.authorized(r); p != nil {
		return p
	}
	if !x.store.of(r).covers(op.path, op.limits) {
		return problem(codeNotFound, "the token is of one project, of which this operation tells nothing")
	}
	if op.writes && x.o.ReadOnly {
		return problem(codeReadOnly, "the server was started with --read-only")
	}
	if op.writes && r.Method != http.MethodDelete && x.full() {
		return problem(codeNoSpace, "the quota is used up: remove conversations, and purge them from the trash")
	}
	return nil
}

// compressed compresses responses of some size for clients that accept it.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.ContentTypes([]string{
		"application/json", "application/problem+json", ndjson, "application/yaml", "text/html", "text/plain", "text/css", "text/javascript",
	}))
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap
}()

// failed answers with an error, unless the body has begun: then the connection ends, and the client sees that the body
// is not complete.
func (x *Server) failed(w *response, r *http.Request, err error, began time.Time) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client has left
	}
	p := problemOf(err, x.root)
	if w.begun {
		x.log(r, p, began)
		panic(http.ErrAbortHandler)
	}
	x.fail(w, r, p, began)
}

func (x *Server) fail(w http.ResponseWriter, r *http.Request, p *Problem, began time.Time) {
	p.Type = "/docs#" + p.Code
	x.log(r, p, began)
	p.write(w)
}

// log records a failure of the server. Nothing in the line comes from the store or from the request, but for the method
// and the pattern of the operation.
func (x *Server) log(r *http.Request, p *Problem, began time.Time) {
	if p.Status >= http.StatusInternalServerError {
		x.o.Log.Warn("failed", "method", method(r), "operation", r.Pattern, "status", p.Status, "code", p.Code,
			"took", time.Since(began).Round(time.Millisecond))
	}
}

// response notes whether the body has begun.
type response struct {
	http.ResponseWriter
	begun    bool
	patience time.Duration
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	w.begun = true
	rc := http.NewResponseController(w.ResponseWriter)
	_ = rc.SetWriteDeadline(time.Now().Add(w.patience)) // not every writer has one
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ndjson is the media type of JSON Lines.
const ndjson = "application/x-ndjson"

// maxDocument bounds the body of a request that has no messages, in bytes.
const maxDocument = 1 << 20

// operation is one operation of openapi.yaml.
type operation struct {
	method, path string
	public       bool // needs no token: it tells nothing about the store
	writes       bool // changes the store
	large        bool // its body may have messages
	long         bool // ends when the client or the work does, not after a minute
	upgrades     bool // to a WebSocket
	limits       bool // keeps to the projects of a limited request: see LimitTo
	serve        func(x *Server, w http.ResponseWriter, r *http.Request) error
}

func (op *operation) pattern() string { return op.method + " " + op.path }

// timeout bounds the time of a request.
func (op *operation) timeout() time.Duration {
	if op.long {
		return 24 * time.Hour
	}
	return time.Minute
}
