package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type erasedRecord struct {
	Record  string `json:"record"`
	Context string `json:"context"`
	ID      string `json:"id,omitempty"` // none for a payload
	Path    string `json:"path"`         // in the store
	Bytes   int64  `json:"bytes"`
	Reason  string `json:"reason"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func (a *app) eraseCmd() *cobra.Command {
	var o ctxdir.RemoveOptions
	cmd := &cobra.Command{
		Use:   "erase CONTEXT ID…",
		Short: "Remove messages for good, from everything in the store",
		Long: `Remove messages for good: their files, what journals and trash hold of them, in any version, also in copies of the context in the
trash, and every payload in the store that nothing refers to any more. Their positions stay, and show as erased. It cannot be undone.

It does not reach what is outside the store, nor other contexts, titles and system prompts that repeat what a message said.`,
		Example: `  ctxtool erase 7c2f 0197f3c2-7a1e-7c55-9a3e-5f2f3c0d9b11 --dry-run
  ctxtool erase 7c2f 0197f3c2-7a1e-7c55-9a3e-5f2f3c0d9b11`,
		Annotations:       exits("", ofStores...),
		Args:              between(2, -1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []uuid.UUID
			for _, text := range args[1:] {
				id, err := parseID(cmd, "ID", text)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				c, err := resolve(s, args[0])
				if err != nil {
					return err
				}
				o.DryRun = a.dryRun
				return a.erase(cmd.Context(), s, c, ids, o)
			})
		},
	}
	cmd.Flags().BoolVar(&o.Shared, "shared", false, "erase also what several branches show")
	a.dryRunFlag(cmd)
	return cmd
}

// unreached is what an erase says it cannot do.
const unreached = "not reached: copies in git, exports, backups, migrated files (.old) and snapshots, and blocks that the disk or its journal has not written over; " +
	"nor a title, a system prompt or another context that repeats the message"

func (a *app) erase(ctx context.Context, s *ctxdir.Store, c uuid.UUID, ids []uuid.UUID, o ctxdir.RemoveOptions) error {
	print := func(e ctxdir.Item) error {
		if a.json {
			return a.record(erasedRecord{"erased", c.String(), idText(e.Message), e.Path, e.Bytes, e.Reason, a.dryRun})
		}
		return a.printf("%s  %s  %s\n", e.Path, humanSize(e.Bytes), e.Reason)
	}
	err := printing(ctx, print, func(ctx context.Context, report func(ctxdir.Item)) error {
		o.Report = report
		_, err := s.Erase(ctx, c, ids, o)
		return err
	})
	if err == nil {
		a.note(unreached)
	}
	return err
}
