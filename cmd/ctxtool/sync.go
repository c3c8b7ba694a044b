package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type syncedRecord struct {
	Record   string   `json:"record"`
	Context  string   `json:"context"`
	Pushed   int64    `json:"pushed"`
	Pulled   int64    `json:"pulled"`
	Branches int      `json:"branches"`
	Diverged []string `json:"diverged"`
	Healed   int64    `json:"healed"`
	Erased   int64    `json:"erased"`
	Removed  bool     `json:"removed,omitempty"`
	Bytes    int64    `json:"bytes"`
	Trips    int64    `json:"trips"`
}

type syncSummary struct {
	Record      string `json:"record"`
	Contexts    int    `json:"contexts"`
	Messages    int64  `json:"messages"`
	Bytes       int64  `json:"bytes"`
	Trips       int64  `json:"trips"`
	Unconfirmed int64  `json:"unconfirmed"`
}

func (a *app) syncCmd() *cobra.Command {
	var to string
	var o replica.Options
	cmd := &cobra.Command{
		Use:   "sync [CONTEXT…] [--to PEER]",
		Short: "Bring two stores together",
		Long: `Bring the store and PEER together: afterwards both have the same contexts, branches, messages and
metadata. PEER is the folder of another store, which is created if it is missing, the URL that
"ctxtool serve" prints on another machine, ssh://HOST/PATH, where ctxtool has to be installed
($CTXDIR_SSH names another program than ssh), or a name of "ctxtool remote". Without --to, sync goes
through all of these names, and passes over those that it cannot reach. Without CONTEXT, it brings
all contexts together.

Where both sides went on in a branch, the messages of PEER keep the name, and those of this store
move to the branch NAME~HOST. An erased message is erased on both sides. A removed context moves to
the trash of the other side, unless it changed there.`,
		Example: `  ctxtool sync --to ~/copy
  ctxtool sync 7c2f --to ~/copy
  ctxtool sync --to ~/copy --push --dry-run`,
		Annotations:       exits("failed to bring some contexts together", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Push && o.Pull {
				return usage(cmd, "--push and --pull cannot be used together")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				for _, ref := range args {
					id, err := s.Resolve(ref)
					if err != nil {
						return err
					}
					o.Contexts = append(o.Contexts, id)
				}
				set, err := s.Settings()
				if err != nil {
					return err
				}
				if to != "" {
					return a.syncWith(cmd.Context(), s, peerOf(set.Remotes, to), o)
				}
				if len(set.Remotes) == 0 {
					return usage(cmd, "the other store is missing: pass it with --to, or name it with ctxtool remote")
				}
				return a.syncAll(cmd.Context(), s, set.Remotes, o)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "bring the store together with `PEER`")
	cmd.Flags().BoolVar(&o.Push, "push", false, "only change PEER")
	cmd.Flags().BoolVar(&o.Pull, "pull", false, "only change this store")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "report what would be done, and change nothing")
	return cmd
}

// peerOf returns where a store is that --to names.
func peerOf(remotes []ctxdir.Remote, to string) string {
	if i := slices.IndexFunc(remotes, named(to)); i >= 0 {
		return remotes[i].Peer
	}
	return to
}

// syncAll goes through the named stores. One that cannot be reached does not stop the others.
func (a *app) syncAll(ctx context.Context, s *ctxdir.Store, remotes []ctxdir.Remote, o replica.Options) error {
	failed := 0
	for _, r := range remotes {
		if err := a.syncWith(ctx, s, r.Peer, o); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed++
			a.warn(errorRecord{Error: fmt.Sprintf("remote %s: %v", r.Name, err)})
		}
	}
	if failed > 0 {
		return problems("", "failed to sync with %s", plain.Count(int64(failed), "remote"))
	}
	return nil
}

// syncWith opens a peer and brings the store together with it.
func (a *app) syncWith(ctx context.Context, s *ctxdir.Store, to string, o replica.Options) error {
	peer, end, err := a.openPeer(ctx, to)
	if err != nil {
		return err
	}
	return closeAfter(end, a.sync(ctx, s, peer, o))
}

func (a *app) sync(ctx context.Context, s *ctxdir.Store, peer replica.Peer, o replica.Options) error {
	client, _ := peer.(*replica.Client)
	var bytes, trips int64 // already reported
	cost := func() (b, t int64) {
		if client == nil {
			return 0, 0
		}
		b, t = client.Bytes-bytes, client.Trips-trips
		bytes, trips = client.Bytes, client.Trips
		return b, t
	}
	var failed error
	var short shortIDs
	o.Report = func(r replica.Synced) {
		if r.Err != nil {
			a.warn(errorRecord{Error: fmt.Sprintf("context %s: %v", r.ID, r.Err)})
			return
		}
		b, t := cost()
		if short == nil {
			short = shortIDsIn(s)
		}
		x := syncedRecord{
			"synced", r.ID.String(), r.Pushed, r.Pulled, r.Branches, append([]string{}, r.Diverged...), r.Healed, r.Erased, r.Removed, b, t,
		}
		if err := a.result(x, "%s  %s", short.of(r.ID), syncedText(&r)); err != nil && failed == nil {
			failed = err
		}
	}
	total, err := replica.Sync(ctx, replica.NewFolder(s), peer, o)
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	summary := syncSummary{Record: "summary", Contexts: total.Contexts, Messages: total.Messages, Unconfirmed: total.Unconfirmed}
	if client != nil {
		summary.Bytes, summary.Trips = client.Bytes, client.Trips
	}
	if a.json {
		if err := a.result(summary, ""); err != nil {
			return err
		}
	} else if total.Contexts == 0 && total.Failed == 0 {
		a.note("already the same on both sides")
	}
	if total.Unconfirmed > 0 {
		a.warn(errorRecord{Error: fmt.Sprintf("the peer has not confirmed %s", plain.Count(total.Unconfirmed, "erasure"))})
	}
	if total.Failed > 0 {
		return problems("", "failed to bring %s together", plain.Count(int64(total.Failed), "context"))
	}
	return nil
}

// syncedText says what happened with a context.
func syncedText(r *replica.Synced) string {
	var parts []string
	add := func(n int64, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(r.Pushed, "%d pushed")
	add(r.Pulled, "%d pulled")
	add(int64(r.Branches), "%d changes of branches")
	add(r.Healed, "%d restored")
	add(r.Erased, "%d erased")
	if r.Removed {
		parts = append(parts, "moved to the trash")
	}
	for _, name := range r.Diverged {
		parts = append(parts, "both sides went on: local messages are on "+name)
	}
	if len(parts) == 0 {
		return "metadata"
	}
	return strings.Join(parts, ", ")
}

// openPeer opens the store that --to names, and returns a function that ends the connection.
func (a *app) openPeer(ctx context.Context, to string) (replica.Peer, func() error, error) {
	u, err := url.Parse(to)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return openServer(u)
	}
	if err != nil || u.Scheme != "ssh" {
		s, err := ctxdir.Init(to, a.options()...)
		if err != nil {
			return nil, nil, err
		}
		return replica.NewFolder(s), s.Close, nil
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") {
		return nil, nil, &ctxdir.Error{Op: "connect", Path: to, Err: fmt.Errorf("%w: the host is missing", ctxdir.ErrInvalid)}
	}
	host := u.Hostname()
	if u.User != nil {
		host = u.User.Username() + "@" + host
	}
	var args []string
	if p := u.Port(); p != "" {
		args = append(args, "-p", p)
	}
	args = append(args, "--", host, "ctxtool --store "+quoted(u.Path)+" peer")
	program := a.env("CTXDIR_SSH")
	if program == "" {
		program = "ssh"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return replica.NewClient(replica.NewPipe(out, in), uuid.Nil), func() error {
		_ = in.Close()
		return cmd.Wait()
	}, nil
}

// openServer opens the store that a server shows at a URL: the fragment is the token, alone or after "token=".
func openServer(u *url.URL) (replica.Peer, func() error, error) {
	token := strings.TrimPrefix(u.Fragment, "token=")
	if token == "" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		err := fmt.Errorf("%w: expected a URL with a token, such as http://127.0.0.1:7433/#TOKEN", ctxdir.ErrInvalid)
		return nil, nil, &ctxdir.Error{Op: "connect", Path: u.Redacted(), Err: err}
	}
	h := replica.NewHTTP(u.Scheme+"://"+u.Host+strings.TrimSuffix(u.EscapedPath(), "/")+"/v1/replica", token)
	return replica.NewClient(h, uuid.Nil), h.Close, nil
}

// quoted quotes a text for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (a *app) peerCmd() *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "peer",
		Short: "Answer another store on standard input and output",
		Long: `Answer the calls of ctxtool sync from another machine, on standard input and output. ctxtool sync
runs this command by ssh.`,
		Example:     `  ctxtool peer --read-only < /dev/null`,
		Annotations: exits("", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				return replica.ServePipe(cmd.Context(), replica.NewFolder(s), replica.Limits{ReadOnly: readOnly}, a.stdin, answers{a.out})
			})
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "refuse every change")
	return cmd
}

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
