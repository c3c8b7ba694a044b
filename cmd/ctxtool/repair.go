package main

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// summaryRecord ends what a verb says that looks at many things.
type summaryRecord struct {
	Record   string         `json:"record"`
	Contexts int            `json:"contexts"`
	Findings int            `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
}

func (a *app) repairCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "repair [CONTEXT…]",
		Short: "Mend contexts: what the index lost is read from the messages again",
		Long: `Open each context for writing, which rebuilds an index that is missing or wrong, and bring index and message files
up to date with the journal. Without CONTEXT, every context of the store.`,
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := contextsOf(s, args)
				if err != nil {
					return err
				}
				return a.repair(cmd.Context(), s, ids)
			})
		},
	}
}

func (a *app) repair(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID) error {
	failed := 0
	for _, id := range ids {
		err := rebuild(ctx, s, id)
		if err != nil && (len(ids) == 1 || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
		}
	}
	var err error
	if a.json {
		err = a.record(summaryRecord{"summary", len(ids), 0, map[string]int{}})
	} else {
		err = a.printf("%s looked through\n", plural(len(ids), "context", "contexts"))
	}
	if err == nil && failed > 0 {
		err = &problemsError{text: fmt.Sprintf("%d of %d contexts could not be repaired", failed, len(ids))}
	}
	return err
}

func rebuild(ctx context.Context, s *ctxdir.Store, id uuid.UUID) error {
	return withOpen(ctx, s, id, func(c *ctxdir.Context) error {
		if err := c.Fold(ctx); err != nil {
			return err
		}
		return c.Refresh(ctx)
	})
}
