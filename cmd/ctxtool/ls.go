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

// orders are the ways to sort; equal contexts come in the order of their ids.
var orders = map[string]func(a, b *ctxdir.Summary) int{
	"updated": func(a, b *ctxdir.Summary) int { return b.UpdatedAt.Compare(a.UpdatedAt) },
	"created": func(a, b *ctxdir.Summary) int { return b.CreatedAt.Compare(a.CreatedAt) },
	"size":    func(a, b *ctxdir.Summary) int { return cmp.Compare(b.Bytes, a.Bytes) },
	"title": func(a, b *ctxdir.Summary) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), strings.Compare(a.Title, b.Title))
	},
}

func (a *app) lsCmd() *cobra.Command {
	var (
		limit int
		sort  string
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the contexts of the store",
		Long: `List the contexts of the store: the end of each id, which is enough to name it, its title, how many branches and messages it has, and what it
takes, those first that were changed last. One with a problem is listed with it.`,
		Example:     "  ctxtool ls --limit 10\n  ctxtool ls --sort size",
		Annotations: exits("a context has a problem", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			order, ok := orders[sort]
			if !ok {
				return usage(cmd, "--sort: %q is none of updated, created, size, title", sort)
			}
			if limit < 0 || cmd.Flags().Changed("limit") && limit == 0 {
				return usage(cmd, "--limit: wanted a number above 0")
			}
			list := func(s *ctxdir.Store) error { return a.list(cmd.Context(), s, order, limit) }
			err := a.withStore(cmd.Context(), list)
			if storeDamaged(err) {
				err = a.withStore(cmd.Context(), list, ctxdir.WithReadOnly())
			}
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most `N`")
	cmd.Flags().StringVar(&sort, "sort", "updated", "updated, created, size (largest or newest first), or title")
	_ = cmd.RegisterFlagCompletionFunc(
		"sort",
		cobra.FixedCompletions([]string{"updated", "created", "size", "title"}, cobra.ShellCompDirectiveNoFileComp),
	)
	return cmd
}

func (a *app) list(ctx context.Context, s *ctxdir.Store, order func(a, b *ctxdir.Summary) int, limit int) error {
	var all []ctxdir.Summary
	for sum, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(x, y ctxdir.Summary) int {
		return cmp.Or(order(&x, &y), slices.Compare(x.ID[:], y.ID[:]))
	})
	total := len(all)
	if limit > 0 {
		all = all[:min(limit, total)]
	}
	print := a.listTable
	if a.json {
		print = a.listRecords
	}
	if err := print(all); err != nil {
		return err
	}
	if len(all) < total {
		a.detail("%d of %s listed", len(all), plural(total, "context", "contexts"))
	}
	return listProblems(all)
}

func (a *app) listRecords(all []ctxdir.Summary) error {
	for _, s := range all {
		r := contextRecord{
			"context", s.ID.String(), s.Title, s.Branches, s.ActiveBranch, s.Messages, s.Bytes, s.CreatedAt, s.UpdatedAt,
			s.Legacy, problemText(s.Problem),
		}
		if err := a.record(r); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) listTable(all []ctxdir.Summary) error {
	if len(all) == 0 {
		a.note(`no contexts yet ("ctxtool new" makes one, "ctxtool import" brings in histories)`)
		return nil
	}
	a.page()
	t := table{
		head: []string{"ID", "TITLE", "BRANCHES", "MESSAGES", "SIZE", "UPDATED"}, right: []int{2, 3, 4}, give: []int{1},
	}
	old := slices.ContainsFunc(all, func(s ctxdir.Summary) bool { return s.Legacy != "" })
	if old {
		t.head = append(t.head, "FORMAT")
	}
	problems := slices.ContainsFunc(all, func(s ctxdir.Summary) bool { return s.Problem != nil })
	if problems {
		t.give = append(t.give, len(t.head))
		t.head = append(t.head, "PROBLEM")
	}
	for _, s := range all {
		row := []string{
			ending(s.ID), s.Title, humanCount(int64(s.Branches)), humanCount(s.Messages), humanSize(s.Bytes), humanTime(s.UpdatedAt),
		}
		if old {
			row = append(row, cmp.Or(s.Legacy, "ctxdir"))
		}
		if problems {
			row = append(row, strings.TrimPrefix(problemText(cause(s.Problem)), s.ID.String()+"/"))
		}
		t.add(row...)
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
	told := bad[max(slices.IndexFunc(bad, func(s ctxdir.Summary) bool { return s.Legacy == "" }), 0)]
	return &problemsError{plural(len(bad), "context has a problem", "contexts have problems"), problemHint(told.ID, told.Problem)}

}
