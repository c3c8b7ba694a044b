package api

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// New returns a server of a store, which stays open until the caller closes it after [Server.Close]. Without a store it
// answers what needs no token, and refuses the rest: so does a server of many users as long as it does not know whose a
// request is.
func New(s *ctxdir.Store, o Options) (*Server, error) {
	if s == nil {
		o.Token = rand.Text() + rand.Text() // that nobody knows
	}
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	var public *url.URL
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
			strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("public URL %q: expected a scheme and a host, such as https://notes.example", o.PublicURL)
		}
		public = u
	}
	g, err := newGuard(o.Token, public)
	if err != nil {
		return nil, err
	}
	if o.MaxBody <= 0 {
		o.MaxBody = maxBody
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	x := &Server{store: whole{s}, o: o, guard: g, mux: http.NewServeMux(), table: map[string]*operation{}}
	if s != nil {
		x.root = s.Info().Path
	}
	x.ended, x.end = context.WithCancel(context.Background())
	x.bounds = defaults()
	x.index.store = s
	x.feeds = feeds{store: s, ended: x.ended, all: map[uuid.UUID]*feed{}}
	for i := range operations {
		x.handle(&operations[i])
	}
	for i := range conversationOperations {
		x.handle(&conversationOperations[i])
	}
	if o.Exchange != nil {
		x.handle(&exchangeOperation)
	}
	if o.MCP != nil {
		x.handle(&mcpOperation)
	}
	if o.Page != nil {
		if err := x.servePage(o.Page); err != nil {
			return nil, fmt.Errorf("load the page: %w", err)
		}
	}
	return x, nil
}

func (x *Server) handle(op *operation) {
	x.table[op.pattern()] = op
	x.mux.Handle(op.pattern(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.run(op, w, r) }))
}

// Close ends what still runs, such as followers, and closes the search index. [Server.Serve] does so.
func (x *Server) Close() {
	x.end()
	x.index.close()
}

// Serve answers requests until ctx ends or the listener fails. It then tells followers so, lets running requests end,
// and returns nil for the end of ctx. config is for TLS, nil for none.
func (x *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	defer x.index.close() // when no request runs any more
	return run(ctx, l, config, leaving{x}, x.bounds.connections)
}

// leaving is a server whose Close ends followers only.
type leaving struct{ *Server }

func (x leaving) Close() { x.end() }

// Handler answers requests until it is closed.
type Handler interface {
	http.Handler
	// Close ends what still runs, such as followers.
	Close()
}

// Run is [Server.Serve] for another handler, such as one that has several servers. If it has a method Wait(context.Context), Run
// calls it in the end: it returns when no request runs any more, or ctx ends.
func Run(ctx context.Context, l net.Listener, config *tls.Config, x Handler) error {
	return run(ctx, l, config, x, maxConnections)
}

func run(ctx context.Context, l net.Listener, config *tls.Config, x Handler, most int) error {
	conns := &connections{max: most, since: map[net.Conn]time.Time{}}
	h := &http.Server{
		Handler: x, TLSConfig: config, ReadHeaderTimeout: headerPatience, IdleTimeout: idle, MaxHeaderBytes: 64 << 10,
		ConnState: conns.changed, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	ended := make(chan error, 1)
	go func() {
		if config != nil {
			ended <- h.ServeTLS(l, "", "")
		} else {
			ended <- h.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		x.Close()
		return err
	case <-ctx.Done():
	}
	x.Close()
	patient, stop := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer stop()
	err := h.Shutdown(patient)
	if err != nil {
		err = h.Close()
	}
	if w, ok := x.(interface{ Wait(ctx context.Context) }); ok { // for WebSockets, which Shutdown does not know
		w.Wait(patient)
	}
	if serveErr := <-ended; err == nil && !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	return err
}
