package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/spf13/cobra"
)

// connection leads to another store.
type connection struct {
	ctxdir.Remote // without a name if it has none
	peer          replica.Peer
	store         *ctxdir.Store // if it is on this machine
	end           func() error
}

// remotesOf returns the stores that --to names: a remote, or where one is. Without it, these are all remotes.
func remotesOf(s *ctxdir.Store, to string) ([]ctxdir.Remote, error) {
	set, err := s.Settings()
	if to == "" || err != nil {
		return set.Remotes, err
	}
	if i := slices.IndexFunc(set.Remotes, named(to)); i >= 0 {
		return set.Remotes[i : i+1], nil
	}
	return []ctxdir.Remote{{Peer: to}}, nil
}

// remember notes the id of a named store: knowing it saves a round trip.
func (a *app) remember(ctx context.Context, s *ctxdir.Store, c *connection) error {
	id, err := c.peer.Store(ctx)
	if err != nil || c.Name == "" || id == c.Store {
		return err
	}
	c.Store = id
	err = s.Configure(ctx, func(set *ctxdir.Settings) error {
		if i := slices.IndexFunc(set.Remotes, named(c.Name)); i >= 0 && set.Remotes[i].Peer == c.Peer {
			set.Remotes[i].Store = id
		}
		return nil
	})
	if errors.Is(err, ctxdir.ErrReadOnly) {
		return nil
	}
	return err
}

// connect opens another store. If it will be changed, a missing one is created.
func (a *app) connect(ctx context.Context, r ctxdir.Remote, o *replica.Options) (*connection, error) {
	c := &connection{Remote: r}
	changes := !o.Pull && !o.Heal && !o.DryRun
	u, err := url.Parse(r.Peer)
	switch {
	case err == nil && (u.Scheme == "http" || u.Scheme == "https"):
		return c, c.openServer(u)
	case err == nil && u.Scheme == "ssh":
		return c, a.openByShell(ctx, c, u, changes)
	}
	open := ctxdir.Open
	if changes {
		open = ctxdir.Init
	}
	s, err := open(r.Peer, a.options()...)
	end := s.Close
	if o.DryRun && !o.Pull && !o.Heal && errors.Is(err, ctxdir.ErrNoStore) {
		s, end, err = temporaryStore(a.options()...)
	}
	if err != nil {
		return nil, err
	}
	c.peer, c.store, c.end = replica.NewFolder(s), s, end
	return c, nil
}

// openByShell runs ctxtool on another machine.
func (a *app) openByShell(ctx context.Context, c *connection, u *url.URL, changes bool) error {
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") {
		return &ctxdir.Error{Op: "connect", Path: c.Peer, Err: fmt.Errorf("%w: the host is missing", ctxdir.ErrInvalid)}
	}
	host := u.Hostname()
	if u.User != nil {
		host = u.User.Username() + "@" + host
	}
	var args []string
	if p := u.Port(); p != "" {
		args = append(args, "-p", p)
	}
	verb := " peer"
	if !changes {
		verb += " --read-only"
	}
	args = append(args, "--", host, "ctxtool --store "+quoted(u.Path)+verb)
	program := a.env("CTXDIR_SSH")
	if program == "" {
		program = "ssh"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.peer = replica.NewClient(replica.NewPipe(out, in), c.Store)
	c.end = func() error {
		_ = in.Close()
		return cmd.Wait()
	}
	return nil
}

// openServer opens the store that a server shows at a URL: the fragment is the token, alone or after "token=".
func (c *connection) openServer(u *url.URL) error {
	token := strings.TrimPrefix(u.Fragment, "token=")
	if token == "" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		err := fmt.Errorf("%w: expected a URL with a token, such as http://127.0.0.1:7433/#TOKEN", ctxdir.ErrInvalid)
		return &ctxdir.Error{Op: "connect", Path: u.Redacted(), Err: err}
	}
	h := replica.NewHTTP(u.Scheme+"://"+u.Host+strings.TrimSuffix(u.EscapedPath(), "/")+"/v1/replica", token)
	c.peer, c.end = replica.NewClient(h, c.Store), h.Close
	return nil
}

// quoted quotes a text for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (a *app) peerCmd() *cobra.Command {
	var l replica.Limits
	cmd := &cobra.Command{
		Use:   "peer",
		Short: "Answer another store on standard input and output",
		Long: `Answer the calls of ctxtool sync from another machine, on standard input and output. ctxtool sync
runs this command by ssh. A missing store is created, unless --read-only is given.`,
		Example:     `  ctxtool peer --read-only < /dev/null`,
		Annotations: exits("", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			saveMemory()
			serve := func(s *ctxdir.Store) error {
				return replica.ServePipe(cmd.Context(), replica.NewFolder(s), l, a.stdin, answers{a.out})
			}
			if l.Bytes < 0 {
				return usage(cmd, "--max-bytes must not be negative")
			}
			if l.ReadOnly {
				return a.withStore(cmd.Context(), serve)
			}
			path, err := a.storePath()
			if err != nil {
				return err
			}
			s, err := ctxdir.Init(path, a.options()...)
			if err != nil {
				return err
			}
			return a.closeStore(cmd.Context(), s, serve(s))
		},
	}
	cmd.Flags().Int64Var(&l.Bytes, "max-bytes", 0, "take at most `N` bytes; 0 for 16 GiB")
	cmd.Flags().BoolVar(&l.ReadOnly, "read-only", false, "refuse every change")
	return cmd
}

// saveMemory makes this process collect garbage more often: what a first copy reads and writes is garbage soon.
func saveMemory() { debug.SetGCPercent(50) }

// answers is the output of peer: the other end waits for each answer.
type answers struct {
	out interface {
		io.Writer
		Flush() error
	}
}

func (w answers) Write(b []byte) (int, error) {
	n, err := w.out.Write(b)
	if err == nil {
		err = w.out.Flush()
	}
	return n, err
}
