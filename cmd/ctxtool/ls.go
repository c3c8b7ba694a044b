package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

type contextRecord struct {
	Record       string    `json:"record"`
	ID           string    `json:"id"`
	Title        string    `json:"title"`
	Branches     int       `json:"branches"`
	ActiveBranch string    `json:"active_branch"`
	Messages     int64     `json:"messages"`
	Bytes        int64     `json:"bytes"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
	Format       string    `json:"format,omitempty"` // of a legacy context
	Problem      string    `json:"problem,omitempty"`
}

// orders are the sort orders; equal contexts sort by id.
var orders = map[string]func(a, b *ctxdir.Summary) int{
	"updated": func(a, b *ctxdir.Summary) int { return b.UpdatedAt.Compare(a.UpdatedAt) },
	"created": func(a, b *ctxdir.Summary) int { return b.CreatedAt.Compare(a.CreatedAt) },
	"size":    func(a, b *ctxdir.Summary) int { return cmp.Compare(b.Bytes, a.Bytes) },
	"title": func(a, b *ctxdir.Summary) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), strings.Compare(a.Title, b.Title))
	},
}

var orderNames = []string{"updated", "created", "size", "title"}

func (a *app) lsCmd() *cobra.Command {
	var (
		limit int
		sort  string
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the contexts of the store",
		Long: `List the contexts of the store, most recently changed first. A row shows the end of the id, which
suffices as CONTEXT, the title, the number of branches and messages, and the size. A context with a
problem shows the problem.`,
		Example:     "  ctxtool ls --limit 10\n  ctxtool ls --sort size",
		Annotations: exits("a context has a problem", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			order, ok := orders[sort]
			if !ok {
				return usage(cmd, "--sort: unknown order %q; use one of: %s", sort, strings.Join(orderNames, ", "))
			}
			if limit < 0 || cmd.Flags().Changed("limit") && limit == 0 {
				return usage(cmd, "--limit must be positive")
			}
			list := func(ctx context.Context, s *ctxdir.Store, _ []string) error { return a.list(ctx, s, order, limit) }
			err := a.onStore(list)(cmd, args)
			if storeDamaged(err) {
				err = a.onStore(list, ctxdir.WithReadOnly())(cmd, args)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most `N` contexts")
	cmd.Flags().StringVar(&sort, "sort", "updated", "sort by `ORDER`: "+strings.Join(orderNames, ", "))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orderNames, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func listAll(ctx context.Context, s *ctxdir.Store) (all []ctxdir.Summary, err error) {
	for sum, err := range s.List(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, sum)
	}
	return all, nil
}

func (a *app) list(ctx context.Context, s *ctxdir.Store, order func(a, b *ctxdir.Summary) int, limit int) error {
	all, err := listAll(ctx, s)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y ctxdir.Summary) int {
		return cmp.Or(order(&x, &y), slices.Compare(x.ID[:], y.ID[:]))
	})
	total := len(all)
	if limit > 0 {
		all = all[:min(limit, total)]
	}
	if err := a.printList(all); err != nil {
		return err
	}
	if len(all) < total {
		a.detail("listed %d of %s", len(all), count(total, "context"))
	}
	return listProblems(all)
}

func (a *app) printList(all []ctxdir.Summary) error {
	if len(all) == 0 && !a.json {
		a.note(`no contexts yet; run "ctxtool new" to create one, or "ctxtool import" to import histories`)
		return nil
	}
	a.page()
	t := table{
		head: []string{"ID", "TITLE", "BRANCHES", "MESSAGES", "SIZE", "UPDATED"}, right: []int{2, 3, 4}, shrink: []int{1},
	}
	old := slices.ContainsFunc(all, func(s ctxdir.Summary) bool { return s.Legacy != "" })
	if old {
		t.head = append(t.head, "FORMAT")
	}
	problems := slices.ContainsFunc(all, func(s ctxdir.Summary) bool { return s.Problem != nil })
	if problems {
		t.shrink = append(t.shrink, len(t.head))
		t.head = append(t.head, "PROBLEM")
	}
	for _, s := range all {
		row := []string{
			shortID(s.ID), s.Title, humanCount(int64(s.Branches)), humanCount(s.Messages), humanSize(s.Bytes), humanTime(s.UpdatedAt),
		}
		if old {
			row = append(row, cmp.Or(s.Legacy, "ctxdir"))
		}
		if problems {
			row = append(row, strings.TrimPrefix(problemText(cause(s.Problem)), s.ID.String()+"/"))
		}
		t.add(contextRecord{
			"context", s.ID.String(), s.Title, s.Branches, s.ActiveBranch, s.Messages, s.Bytes, s.CreatedAt, s.UpdatedAt,
			s.Legacy, problemText(s.Problem),
		}, row...)
		if problems {
			t.style(len(row)-1, red)
		}
	}
	return a.printTable(&t)
}

func problemText(err error) string {
	if err == nil {
		return ""
	}
	return oneLine(err.Error())
}

func listProblems(all []ctxdir.Summary) error {
	var bad []ctxdir.Summary
	for _, s := range all {
		if s.Problem != nil {
			bad = append(bad, s)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	worst := bad[max(slices.IndexFunc(bad, func(s ctxdir.Summary) bool { return s.Legacy == "" }), 0)]
	return problems(problemHint(worst.ID, worst.Problem), "found problems in %s", count(len(bad), "context"))
}
