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
		Short: "Remove messages for good",
		Long: `Remove every version of messages for good: from message files, journals, packs and the trash,
including copies of the context there, and from payloads that nothing else refers to. Their
positions remain, and show as erased. This cannot be undone.

erase does not reach anything outside the store, nor other contexts, titles and system prompts that
repeat a message.`,
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
	cmd.Flags().BoolVar(&o.Shared, "shared", false, "also erase messages that several branches show")
	a.dryRunFlag(cmd)
	return cmd
}

// eraseLimits lists what an erase cannot remove.
const eraseLimits = "not reached: copies in git, exports, backups, snapshots and migrated files (.old), disk blocks that are not yet " +
	"overwritten, and titles, system prompts or contexts that repeat the message"

func (a *app) erase(ctx context.Context, s *ctxdir.Store, c uuid.UUID, ids []uuid.UUID, o ctxdir.RemoveOptions) error {
	print := func(e ctxdir.Item) error {
		r := erasedRecord{"erased", c.String(), idText(e.Message), e.Path, e.Bytes, e.Reason, a.dryRun}
		return a.result(r, "%s  %s  %s", e.Path, humanSize(e.Bytes), e.Reason)
	}
	err := withReport(ctx, print, func(ctx context.Context, report func(ctxdir.Item)) error {
		o.Report = report
		_, err := s.Erase(ctx, c, ids, o)
		return err
	})
	if err == nil {
		a.note(eraseLimits)
	}
	return err
}
