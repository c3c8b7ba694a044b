package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

func (a *app) restoreCmd() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "restore --from DIR [CONTEXT…]",
		Short: "Bring contexts back from a backup",
		Long: `Copy contexts from the backup in DIR into the store, which is created if it is missing. Without
CONTEXT, copy every context of the backup. A context that shows the same already stays; another
version of it moves to the trash of the store.

To bring back what was removed from a store itself, see "ctxtool trash restore".`,
		Example: `  ctxtool restore --from ~/backup
  ctxtool restore --from ~/backup 7c2f`,
		Annotations: exits("failed to copy some contexts, messages or payloads", ofStores...),
		Args:        between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from == "" {
				return usage(cmd, "--from is required")
			}
			source, err := ctxdir.Open(from, a.options(ctxdir.WithReadOnly())...)
			if err != nil {
				return err
			}
			return closeAfter(source.Close, a.restoreFrom(cmd.Context(), source, args))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "copy from the backup in `DIR`")
	_ = cmd.MarkFlagDirname("from")
	return cmd
}

func (a *app) restoreFrom(ctx context.Context, backup *ctxdir.Store, refs []string) error {
	ids, err := contextsOf(backup, refs)
	if err != nil {
		return err
	}
	s, err := a.openOrInit()
	if err != nil {
		return err
	}
	return closeAfter(s.Close, a.copyContexts(ctx, backup, ids, s, copyVerb{"restored", "Restoring", "restore"}))
}
