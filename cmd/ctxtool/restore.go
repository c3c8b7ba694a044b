package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

func (a *app) restoreCmd() *cobra.Command {
	var from string
	var which selection
	cmd := &cobra.Command{
		Use:   "restore DIR [CONTEXT…]",
		Short: "Copy contexts from a backup or another store",
		Long: `Copy contexts from the backup or store in DIR into the store in use, which is created if it is
missing. Without CONTEXT, copy every context of DIR, or those of a project, for example to copy
conversations from the user's own store to a workspace. A context that already shows the same
stays; a different version moves to the trash of the store in use.

To restore what was removed from a store, see "ctxtool trash restore".`,
		Example: `  ctxtool restore ~/backup
  ctxtool restore ~/backup 7c2f
  ctxtool restore ~/.local/share/ctxdir --project .`,
		Annotations: exits("failed to copy some contexts, messages or payloads", ofStores...),
		Args:        between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("from") && len(args) > 0 {
				from, args = args[0], args[1:]
			}
			if from == "" {
				return usage(cmd, "the source folder is missing")
			}
			if _, err := which.labels.parse(cmd); err != nil {
				return err
			}
			source, err := ctxdir.Open(from, a.options(ctxdir.Options{ReadOnly: true})...)
			if errors.Is(err, ctxdir.ErrNoStore) || err != nil && noFolder(from) {
				return &verbError{exitNoStore, fmt.Sprintf("%s: not a store", from), "name the folder of a backup or of another store"}
			}
			if err != nil {
				return err
			}
			return closeAfter(source.Close, a.restoreFrom(cmd.Context(), source, &which, args))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "copy from the backup in `DIR`, instead of the first argument")
	which.flags(cmd, "copy")
	_ = cmd.MarkFlagDirname("from")
	return cmd
}

func (a *app) restoreFrom(ctx context.Context, backup *ctxdir.Store, which *selection, refs []string) error {
	ids, err := which.ids(ctx, backup, refs)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		a.note("%s has no contexts to copy", backup.Info().Path)
		return nil
	}
	s, err := a.openOrInit()
	if err != nil {
		return err
	}
	return closeAfter(s.Close, a.copyContexts(ctx, backup, ids, s, copyVerb{"restored", "Restoring", "restore"}))
}
