package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/web"
)

type listeningRecord struct {
	Record  string `json:"record"`
	URL     string `json:"url"` // of the page; the token of a user goes behind it: #token=TOKEN
	API     string `json:"api"`
	Metrics string `json:"metrics,omitempty"`
}

func (a *app) serve(ctx context.Context) error {
	c := a.config
	if c.Cert == "" && !c.PlainHTTP && !api.IsLoopback(c.Listen) {
		return wrong("--listen %s: others can connect, so it needs --tls-cert and --tls-key, or --plain-http behind a proxy", c.Listen)
	}
	config, err := c.tls()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(a.stderr, nil))
	p, err := a.place(ctx, log)
	if err != nil {
		return err
	}
	o := server.Options{
		API:  api.Options{PublicURL: c.PublicURL, Version: version(), MaxBody: c.MaxBody, Page: web.Files(), Log: log},
		Idle: c.Idle, MaxOpen: c.MaxOpen, Audit: server.Audit(c.Audit), Inviting: p.users,
	}
	if o.Model, err = c.model(); err != nil {
		return errors.Join(err, p.close())
	}
	if o.Login, err = c.login(ctx, p.users); err != nil {
		return errors.Join(err, p.close())
	}
	if o.Login != nil {
		o.API.Login = "/login"
	}
	s, err := server.New(p.directory, p.stores, o)
	if err != nil {
		return errors.Join(usageError{err}, p.close())
	}
	// It answers /healthz meanwhile, and is not ready.
	ctx, stop := context.WithCancelCause(ctx)
	prepared := make(chan struct{})
	go func() {
		defer close(prepared)
		if err := p.prepare(ctx); err != nil {
			stop(err)
			return
		}
		p.maintain(ctx)
	}()
	err = a.listen(ctx, s, config)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	stop(nil)
	<-prepared
	return errors.Join(err, p.close())
}

// login returns how people sign in with an account; nil if they do not.
func (c *config) login(ctx context.Context, all server.Accounts) (*server.Login, error) {
	if c.Issuer == "" {
		return nil, nil
	}
	if c.ClientID == "" || c.ClientSecret == "" || len(c.Domains) == 0 || c.PublicURL == "" {
		return nil, wrong("--oidc-issuer needs --oidc-client-id, --oidc-client-secret, --oidc-domains and --public-url")
	}
	return server.NewLogin(ctx, all, server.LoginOptions{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, PublicURL: c.PublicURL, Domains: c.Domains,
	})
}

func (c *config) tls() (*tls.Config, error) {
	if c.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, wrong("cannot use the certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (a *app) listen(ctx context.Context, s *server.Server, config *tls.Config) error {
	defer s.Close()
	c := a.config
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	scheme := "http"
	if config != nil {
		scheme = "https"
	}
	base := c.PublicURL
	if base == "" {
		base = (&url.URL{Scheme: scheme, Host: l.Addr().String()}).String()
	}
	r := listeningRecord{Record: "listening", URL: base + "/", API: base + "/v1"}
	if c.Metrics != "" {
		at, end, err := serveMetrics(ctx, c.Metrics, s)
		if err != nil {
			return errors.Join(fmt.Errorf("cannot listen for metrics: %w", err), l.Close())
		}
		defer end()
		r.Metrics = at
	}
	if err := a.print(r, "Serving at %s\nUsers open it with #token= and their token behind the address.", r.URL); err != nil {
		return err
	}
	return api.Run(ctx, l, config, s)
}

// serveMetrics serves metrics at an address of their own: they are for the operator, not for users.
func serveMetrics(ctx context.Context, address string, s *server.Server) (at string, end func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.Metrics())
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(l) // until end
	}()
	return "http://" + l.Addr().String() + "/metrics", func() {
		_ = h.Close()
		<-done
	}, nil
}
