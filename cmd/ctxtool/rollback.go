package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/spf13/cobra"
)

type rolledBackRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Path     string `json:"path"`
	Messages int64  `json:"messages"`
	Missing  int64  `json:"missing,omitempty"`
	Trashed  string `json:"trashed,omitempty"`
}

func (a *app) rollbackCmd() *cobra.Command {
	var (
		to            string
		backup, force bool
	)
	cmd := &cobra.Command{
		Use:   "rollback CONTEXT (--to FILE | --from-backup)",
		Short: "Convert a context back to the legacy format",
		Long: `Convert a context back to the legacy format.

--to writes FILE, including archived messages and payloads. The context stays. A migrated context
gets its original form, with the messages appended since. A context that was a folder becomes a
folder, unless FILE ends in .json.

--from-backup removes the suffix .old from the original that the context was migrated from, and
moves the context to the trash. It fails if the context has changed since, unless --force is given.`,
		Example: `  ctxtool rollback 7c2f --to old.json
  ctxtool rollback b81d --from-backup`,
		Annotations:       exits("some messages are unreadable, or the context has changed since", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("to"); {
			case given && backup:
				return usage(cmd, "--to and --from-backup cannot be used together")
			case to == "" && !backup:
				return usage(cmd, "--to or --from-backup is required")
			}
			return a.rollback(cmd.Context(), args[0], to, force)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "write the legacy context to `FILE`")
	cmd.Flags().BoolVar(&backup, "from-backup", false, "restore the original that the context was migrated from")
	a.undoable(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "proceed despite unreadable messages or later changes")
	return cmd
}

func (a *app) rollback(ctx context.Context, ref, to string, force bool) error {
	return a.withStore(ctx, func(s *ctxdir.Store) error {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		bar := a.newProgress("Writing")
		o := legacy.RollbackOptions{To: to, Force: force, Progress: func(n, all int64) { bar.Steps("messages", n, all) }}
		done, err := legacy.Rollback(ctx, s, id, o)
		bar.Clear()
		if differs := libraryError(err).Differs; to == "" && differs != nil {
			for _, d := range differs {
				a.detail("%s", plain.OneLine(d))
			}
			return problems("add --force to restore the original anyway, and move the context to the trash", "%v", err)
		}
		if err != nil {
			return err
		}
		if err := a.rolledBack(done); err != nil || done.Missing == 0 {
			return err
		}
		return problems("", "left out %s that cannot be read", plain.Count(done.Missing, "message"))
	})
}

func (a *app) rolledBack(done legacy.RollbackResult) error {
	if !a.json && done.Trash != "" {
		a.note("moved the context to %s", done.Trash)
	}
	r := rolledBackRecord{"rolled_back", done.Context.String(), done.Path, done.Messages, done.Missing, done.Trash}
	return a.result(r, "%s  %s", plain.OneLine(done.Path), plain.Count(done.Messages, "message"))
}
