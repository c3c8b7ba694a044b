package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
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
		Short: "Give a context back in the form of the program before",
		Long: `Give a context back in the form of the program before it. With --to, FILE is written, with archived messages and payloads; the context
stays. One that was migrated comes in its old form, equal to what it was and with what was said since; one that was a folder becomes a
folder, unless FILE ends in .json. With --from-backup, what the context was migrated from loses the suffix .old, and the context goes to the
trash; this is refused when it was changed since, unless --force is given.`,
		Example: `  ctxtool rollback 7c2f --to old.json
  ctxtool rollback b81d --from-backup`,
		Annotations:       exits("some messages could not be read, or the context was changed since", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("to"); {
			case given && backup:
				return usage(cmd, "--to and --from-backup exclude each other")
			case to == "" && !backup:
				return usage(cmd, "either --to or --from-backup is needed")
			}
			if backup {
				return a.restoreLegacy(cmd.Context(), args[0], force)
			}
			return a.rollback(cmd.Context(), args[0], to, force)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "write this `FILE`")
	cmd.Flags().BoolVar(&backup, "from-backup", false, "put back what the context was migrated from")
	cmd.Flags().BoolVar(&force, "force", false, "also when messages came since, or some cannot be read")
	return cmd
}

func (a *app) rollback(ctx context.Context, ref, to string, force bool) error {
	return a.withStore(ctx, func(s *ctxdir.Store) error {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		p := a.newProgress("writing")
		done, err := s.Rollback(ctx, id, ctxdir.LegacyOptions{To: to, Force: force, Progress: func(n, all int64) { p.steps("messages", n, all) }})
		p.clear()
		if err != nil {
			return err
		}
		if err := a.rolledBack(done); err != nil {
			return err
		}
		if done.Missing > 0 {
			return &problemsError{
				text: plural(int(done.Missing), "message that cannot be read is", "messages that cannot be read are") + " not in the file",
			}
		}
		return nil
	})
}

func (a *app) restoreLegacy(ctx context.Context, ref string, force bool) error {
	return a.withStore(ctx, func(s *ctxdir.Store) error {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		done, err := s.Rollback(ctx, id, ctxdir.LegacyOptions{Force: force})
		if differs := placeOf(err).Differs; differs != nil {
			for _, d := range differs {
				a.detail("%s", oneLine(d))
			}
			return &problemsError{text: err.Error(), hint: "--force puts the old file back all the same; the context goes to the trash"}
		}
		if err != nil {
			return err
		}
		return a.rolledBack(done)
	})
}

func (a *app) rolledBack(done ctxdir.LegacyResult) error {
	if a.json {
		return a.record(rolledBackRecord{"rolled_back", done.Context.String(), done.Path, done.Messages, done.Missing, done.Trashed.Path})
	}
	if done.Trashed.Path != "" {
		a.note("the context is in the trash: %s", done.Trashed.Path)
	}
	return a.printf("%s  %s\n", oneLine(done.Path), plural(int(done.Messages), "message", "messages"))
}
