package main

import (
	"context"
	"fmt"
	"math"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

// diffRecord says where two branches part. The records of the messages that only one of them shows follow.
type diffRecord struct {
	Record      string `json:"record"`
	Common      int64  `json:"common"` // messages that both begin with
	Left        int64  `json:"left"`   // messages that only the first branch shows
	Right       int64  `json:"right"`
	LeftBranch  string `json:"left_branch"`
	RightBranch string `json:"right_branch"`
}

func (a *app) diffCmd() *cobra.Command {
	f := showFlags{}
	cmd := &cobra.Command{
		Use:   "diff CONTEXT BRANCH BRANCH",
		Short: "Show where two branches diverge, and what each says",
		Long: `Show how many messages two branches share from the beginning, and then the messages that only one of
them shows: first those of the first branch, then those of the second.

With --json, the first record counts the shared messages; a record for each other message follows.`,
		Example:           "  ctxtool diff 7c2f main alt\n  ctxtool diff 7c2f main alt --no-content",
		Annotations:       exits("some messages are unavailable or incomplete", ofStores...),
		Args:              between(3, 3),
		ValidArgsFunction: a.completeTwoBranches,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return a.diff(cmd.Context(), c, &f, args[1], args[2])
			}, ctxdir.Options{ReadOnly: true, MemoryLimit: maxParsedBody})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.full, "full", false, "show thoughts, tool calls and results in full")
	flags.BoolVar(&f.all, "all", false, "show bookkeeping, too")
	flags.BoolVar(&f.noContent, "no-content", false, "show messages without their content")
	return cmd
}

func (a *app) completeTwoBranches(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 || len(args) == 2 {
		return a.branchesOf(cmd.Context(), args[0], part)
	}
	return a.completeContexts(1)(cmd, args, part)
}

func (a *app) diff(ctx context.Context, c *ctxdir.Context, f *showFlags, left, right string) error {
	all, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	order := map[string]int{}
	for i, b := range all {
		order[b.Name] = i
	}
	part := func(name string) (int, *ctxdir.Branch, error) {
		b, err := branchOf(c, name)
		return order[name], b, err
	}
	i, one, err := part(left)
	if err != nil {
		return err
	}
	j, other, err := part(right)
	if err != nil {
		return err
	}
	r := diffRecord{Record: "diff", LeftBranch: left, RightBranch: right}
	r.Common = min(sharedBy(all, order, i, j), all[i].Messages, all[j].Messages)
	r.Left, r.Right = all[i].Messages-r.Common, all[j].Messages-r.Common
	a.page()
	shared := plain.Count(r.Common, "message")
	if err := a.result(r, "%s and %s share their first %s.", plain.OneLine(left), plain.OneLine(right), shared); err != nil {
		return err
	}
	var lacks incompleteCount
	for _, b := range []*ctxdir.Branch{one, other} {
		n := all[order[b.Name()]].Messages - r.Common
		if err := a.diffPart(ctx, c, b, f, r.Common, n, &lacks); err != nil {
			return err
		}
	}
	if err := lacks.err(c.ID()); err != nil {
		return err
	}
	return problemOf(c)
}

// diffPart prints the n messages of a branch behind the common ones.
func (a *app) diffPart(
	ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, f *showFlags, common, n int64, lacks *incompleteCount,
) error {
	if !a.json {
		head := fmt.Sprintf("%s: %s more", plain.OneLine(b.Name()), plain.Count(n, "message"))
		if n == 0 {
			head = plain.OneLine(b.Name()) + ": no more messages"
		}
		if err := a.printf("\n%s\n", a.out.Colours().Paint(term.Bold, "═══ "+head)); err != nil || n == 0 {
			return err
		}
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	print, flush := a.messagePrinter(ctx, c, b.Name(), f)
	err := eachMessage(ctx, b, common, math.MaxInt64, func(m *ctxdir.Message) error {
		s, err := record.Load(ctx, m, a.content(f.noContent))
		if err != nil {
			return err
		}
		err = print(s)
		lacks.add(s)
		return err
	})
	if err != nil {
		return err
	}
	return flush()
}
