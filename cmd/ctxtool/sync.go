package main

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) syncCmd() *cobra.Command {
	var to string
	var watch bool
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
move to the branch NAME~HOST ($CTXDIR_HOST gives this machine another name). An erased message is
erased on both sides. A removed context moves to the trash of the other side, unless it changed
there.

With --watch, sync goes on whenever something changes, until Ctrl-C. It looks at a store on another
machine every two seconds.`,
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
			if watch && o.DryRun {
				return usage(cmd, "--watch and --dry-run cannot be used together")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				for _, ref := range args {
					id, err := s.Resolve(ref)
					if err != nil {
						return err
					}
					o.Contexts = append(o.Contexts, id)
				}
				saveMemory()
				o.Host = a.env("CTXDIR_HOST")
				remotes, err := remotesOf(s, to)
				if err != nil {
					return err
				}
				if len(remotes) == 0 {
					return usage(cmd, "the other store is missing: pass it with --to, or name it with ctxtool remote")
				}
				if watch {
					return a.syncWatch(cmd.Context(), s, remotes, o, to != "")
				}
				if to != "" {
					return a.syncWith(cmd.Context(), s, remotes[0], o)
				}
				return a.syncAll(cmd.Context(), s, remotes, o)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "bring the store together with `PEER`")
	cmd.Flags().BoolVar(&o.Push, "push", false, "only change PEER")
	cmd.Flags().BoolVar(&o.Pull, "pull", false, "only change this store")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on, whenever something changes")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "report what would be done, and change nothing")
	return cmd
}

// syncAll goes through the named stores. One that cannot be reached does not stop the others.
func (a *app) syncAll(ctx context.Context, s *ctxdir.Store, remotes []ctxdir.Remote, o replica.Options) error {
	failed := 0
	for _, r := range remotes {
		if err := a.syncWith(ctx, s, r, o); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed++
			a.unreached(ctx, s, &r, err)
		}
	}
	if failed > 0 {
		return problems("", "failed to sync with %s", plain.Count(int64(failed), "remote"))
	}
	return nil
}

// syncWith opens a peer and brings the store together with it.
func (a *app) syncWith(ctx context.Context, s *ctxdir.Store, r ctxdir.Remote, o replica.Options) error {
	c, err := a.connect(ctx, r, &o)
	if err != nil {
		return err
	}
	err = closeAfter(c.end, a.sync(ctx, s, c, o, false))
	if errors.Is(err, replica.ErrOtherStore) && r.Store != uuid.Nil {
		r.Store = uuid.Nil
		return a.syncWith(ctx, s, r, o)
	}
	return err
}
