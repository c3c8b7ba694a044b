package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type movedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Messages int64  `json:"messages"`
	To       string `json:"to"` // the folder of the other store
}

func (a *app) mvCmd() *cobra.Command {
	var to string
	var which selection
	cmd := &cobra.Command{
		Use:   "mv CONTEXT… --to STORE",
		Short: "Move contexts to another store of this machine",
		Long: `Move contexts to the store in the folder STORE. mv copies each context, reads the copy back, and then
moves the context to the trash of this store. If it is interrupted, run it again.`,
		Example:           "  ctxtool --store ~/copy init\n  ctxtool mv 7c2f --to ~/copy",
		Annotations:       exits("failed to move some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case to == "":
				return usage(cmd, "the other store is missing: pass its folder with --to")
			case len(args) == 0 && !which.given():
				return usage(cmd, "no context to move: pass CONTEXT, --project or --label")
			}
			if _, err := which.labels.parse(cmd); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := which.ids(cmd.Context(), s, args)
				if err != nil {
					return err
				}
				other, err := ctxdir.Open(to, a.options()...)
				if err != nil {
					return err
				}
				return closeAfter(other.Close, a.move(cmd.Context(), s, ids, other))
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "move to the store in `DIR`")
	which.flags(cmd, "move")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

func (a *app) move(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID, to *ctxdir.Store) error {
	path := to.Info().Path
	from, into := replica.NewFolder(s), replica.NewFolder(to)
	failed, err := eachContext(ctx, a, "Moving", ids, func(id uuid.UUID) (int64, error) {
		return replica.Move(ctx, from, into, id)
	}, func(id uuid.UUID, messages int64) error {
		return a.result(movedRecord{"moved", id.String(), messages, path}, "%s  %s, now in %s", id, plain.Count(messages, "message"), path)
	})
	if err == nil {
		err = failures("move", failed, len(ids))
	}
	return err
}
