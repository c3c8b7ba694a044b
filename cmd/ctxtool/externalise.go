package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) externaliseCmd() *cobra.Command {
	var threshold int64
	cmd := &cobra.Command{
		Use:   "externalise [CONTEXT…]",
		Short: "Move large texts of stored messages to blobs, or back",
		Long: `Apply a threshold to stored messages. Texts of at least N bytes move to blobs, shorter ones back
into their messages; binary data always moves to blobs. 0 moves every text, -1 none. Without
--threshold, use the setting of the store. Without CONTEXT, change every context of the store. An
interrupted run can be repeated.`,
		Example: `  ctxtool externalise --threshold 4096 --dry-run
  ctxtool externalise 7c2f --threshold -1`,
		Annotations:       exits("failed to change some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, args []string) error {
				if !cmd.Flags().Changed("threshold") {
					threshold = s.Info().TextThreshold
				}
				return a.externalise(ctx, s, args, threshold)
			})(cmd, args)
		},
	}
	cmd.Flags().Int64Var(&threshold, "threshold", 0, "move texts of at least `N` bytes (default: the store's setting)")
	a.dryRunFlag(cmd)
	return cmd
}

func (a *app) externalise(ctx context.Context, s *ctxdir.Store, refs []string, threshold int64) error {
	ids, err := contextsOf(s, refs)
	if err != nil {
		return err
	}
	var messages int64
	failed, err := eachContext(ctx, a, "Externalising", ids, func(id uuid.UUID) (done ctxdir.ArchiveResult, err error) {
		err = withOpen(ctx, s, id, func(c *ctxdir.Context) (err error) {
			done, err = c.Admin().Externalise(ctx, threshold, a.dryRun)
			return err
		})
		return done, err
	}, func(id uuid.UUID, done ctxdir.ArchiveResult) error {
		messages += done.Messages
		if !a.json && done.Messages == 0 {
			return nil
		}
		r := rewriteRecord{"externalised", id.String(), done.Messages, done.Before, done.After, 0, false}
		return a.result(r, "%s  %s", id, sizeChange(done))
	})
	if err != nil {
		return err
	}
	verb := "changed"
	if a.dryRun {
		verb = "would change"
	}
	if !a.json {
		a.note("%s %s in %s", verb, plain.Count(messages, "message"), plain.Count(len(ids), "context"))
	} else if err := a.record(summaryRecord{Record: "summary", Contexts: len(ids), ByKind: map[string]int{}}); err != nil {
		return err
	}
	return failures("change", failed, len(ids))
}
