package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/mcp"
	"github.com/ctxdir/ctxdir/web"
	"github.com/spf13/cobra"
)

type listeningRecord struct {
	Record    string `json:"record"`
	URL       string `json:"url"` // of the page, with the token
	API       string `json:"api"`
	TokenFile string `json:"token_file"`
}

type serveFlags struct {
	listen, publicURL, cert, key, tokenFile string
	readOnly, open                          bool
}

func (a *app) serveCmd() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the store over HTTP",
		Long: `Serve the store over HTTP to programs in every language, until Ctrl-C. The server describes the
API at /docs.

Each request needs the token, which serve creates once and keeps in a file that only you can read.
Without --listen, only programs on this machine can connect; other addresses need TLS.`,
		Example:     "  ctxtool serve --open\n  ctxtool serve --listen 127.0.0.1:0 --read-only",
		Annotations: exits("", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := f.tls(cmd)
			if err != nil {
				return err
			}
			var opts []ctxdir.Options
			if f.readOnly {
				opts = append(opts, ctxdir.Options{ReadOnly: true})
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error { return a.serve(cmd.Context(), s, &f, config) }, opts...)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", api.DefaultAddress, "listen at `ADDR`, or the next free port")
	flags.BoolVar(&f.open, "open", false, "open the page in a browser")
	flags.BoolVar(&f.readOnly, "read-only", false, "refuse to change the store")
	flags.StringVar(&f.publicURL, "public-url", "", "accept requests for the host of `URL`, such as that of a proxy")
	flags.StringVar(&f.cert, "tls-cert", "", "use TLS with the certificate in `FILE`")
	flags.StringVar(&f.key, "tls-key", "", "use TLS with the key in `FILE`")
	flags.StringVar(&f.tokenFile, "token-file", "", "keep the token in `FILE`")
	return cmd
}

// tls returns the configuration for TLS, nil for none.
func (f *serveFlags) tls(cmd *cobra.Command) (*tls.Config, error) {
	switch {
	case (f.cert == "") != (f.key == ""):
		return nil, usage(cmd, "--tls-cert and --tls-key need each other")
	case f.cert == "" && !api.IsLoopback(f.listen):
		return nil, usage(cmd, "--listen %s: an address that others can reach needs --tls-cert and --tls-key", f.listen)
	case f.cert == "":
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, badArgument("", "cannot use the certificate: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (a *app) serve(ctx context.Context, s *ctxdir.Store, f *serveFlags, config *tls.Config) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	path := f.tokenFile
	if path == "" {
		path = filepath.Join(dir, "serve.token")
	}
	token, err := api.Token(path)
	if err != nil {
		return fmt.Errorf("cannot use the token: %w", err)
	}
	agents := mcp.New(s, mcp.Options{Version: version().Version})
	defer agents.Close() //nolint:errcheck // the index was only read
	server, err := api.New(s, api.Options{
		Token: token, ReadOnly: f.readOnly, PublicURL: f.publicURL, Version: version().Version,
		Page: web.Files(), MCP: agents.Handler(), Log: slog.New(slog.NewTextHandler(a.stderr, nil)),
	})
	if err != nil {
		return badArgument("", "%v", err)
	}
	l, err := api.Listen(f.listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	base := f.publicURL
	if base == "" {
		base = (&url.URL{Scheme: scheme(config), Host: reachable(l.Addr())}).String()
	}
	r := listeningRecord{"listening", base + "/#token=" + token, base + "/v1", path}
	if err := a.result(r, "serving at %s\nStop with Ctrl-C.", r.URL); err != nil {
		return err
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	if f.open {
		forget, err := a.openPage(dir, r.URL)
		if err != nil {
			return fmt.Errorf("failed to open the page: %w", err)
		}
		defer forget()
	}
	if err := server.Serve(ctx, l, config); err != nil {
		return err
	}
	a.silent = true // it ends with an interrupt
	return ctx.Err()
}

func scheme(config *tls.Config) string {
	if config == nil {
		return "http"
	}
	return "https"
}

// reachable is the address of a listener for a browser on this machine.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// stateDir is the folder for what the command itself keeps, such as the token of serve.
func (a *app) stateDir() (string, error) {
	if dir := a.env("XDG_STATE_HOME"); filepath.IsAbs(dir) { // its specification ignores relative paths
		return filepath.Join(dir, "ctxdir"), nil
	}
	home := a.env("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("cannot find a home folder for the token: %w", err)
		}
	}
	return filepath.Join(home, ".local", "state", "ctxdir"), nil
}
