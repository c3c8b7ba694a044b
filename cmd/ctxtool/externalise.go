package main

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type externalisedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Messages int64  `json:"messages"`
	Before   int64  `json:"bytes_before"`
	After    int64  `json:"bytes_after"`
}

func (a *app) externaliseCmd() *cobra.Command {
	var threshold int64
	cmd := &cobra.Command{
		Use:   "externalise [CONTEXT…]",
		Short: "Move large texts of stored messages to blobs, or back",
		Long: `Apply a threshold to messages that are stored already: texts of N bytes or more become blobs, shorter ones go back into
their messages; binary data becomes blobs in any case. 0 moves every string, -1 no text. Without --threshold, that of the
store counts; without CONTEXT, every context of the store. It can be stopped at any time and done again.`,
		Example: `  ctxtool externalise --threshold 4096 --dry-run
  ctxtool externalise 7c2f --threshold -1`,
		Annotations:       exits("some contexts could not be changed", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := contextsOf(s, args)
				if err != nil {
					return err
				}
				if !cmd.Flags().Changed("threshold") {
					threshold = s.Info().TextThreshold
				}
				return a.externalise(cmd.Context(), s, ids, threshold)
			})
		},
	}
	cmd.Flags().Int64Var(&threshold, "threshold", 0, "move texts of `N` bytes or more; the store's setting if not given")
	a.dryRunFlag(cmd)
	return cmd
}

func (a *app) externalise(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID, threshold int64) error {
	failed := 0
	var sum ctxdir.ArchiveResult
	bar := a.newProgress("Looking through")
	for i, id := range ids {
		bar.contexts(i, len(ids))
		var done ctxdir.ArchiveResult
		err := withOpen(ctx, s, id, func(c *ctxdir.Context) (err error) {
			done, err = c.Externalise(ctx, threshold, a.dryRun)
			return err
		})
		bar.clear()
		if err != nil && (len(ids) == 1 || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
			continue
		}
		sum.Messages, sum.Before, sum.After = sum.Messages+done.Messages, sum.Before+done.Before, sum.After+done.After
		if a.json {
			err = a.record(externalisedRecord{"externalised", id.String(), done.Messages, done.Before, done.After})
		} else if done.Messages > 0 {
			err = a.printf(
				"%s  %s, %s before, %s after\n",
				id,
				plural(int(done.Messages), "message", "messages"),
				humanSize(done.Before),
				humanSize(done.After),
			)
		}
		if err != nil {
			return err
		}
	}
	var err error
	switch {
	case a.json:
		err = a.record(summaryRecord{Record: "summary", Contexts: len(ids), ByKind: map[string]int{}})
	case a.dryRun:
		a.note("%s would change", plural(int(sum.Messages), "message", "messages"))
	default:
		a.note("%s changed in %s", plural(int(sum.Messages), "message", "messages"), plural(len(ids), "context", "contexts"))
	}
	if err == nil && failed > 0 {
		err = &problemsError{text: fmt.Sprintf("%d of %d contexts could not be changed", failed, len(ids))}
	}
	return err
}
