package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

func (a *app) treeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "tree CONTEXT",
		Short: "Draw the branches of a context as a tree",
		Long: `Draw the branches of a context as a tree: each hangs from the one that it shares its first messages with. FORK is how many those are, and so
the position of the first message that is its own; MESSAGES are all that it shows. The active branch is marked with a star.`,
		Example: `  ctxtool tree 7c2f
  ctxtool --json tree 7c2f`,
		Annotations:       exits("the context has a problem", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return a.tree(cmd.Context(), c)
			}, ctxdir.WithReadOnly())
		},
	}
}

func (a *app) tree(ctx context.Context, c *ctxdir.Context) error {
	all, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	if a.json {
		for _, b := range all {
			if err := a.record(branchRow(b)); err != nil {
				return err
			}
		}
		return problemOf(c)
	}
	a.page()
	t := table{head: []string{"BRANCH", "FORK", "MESSAGES", "SIZE"}, right: []int{1, 2, 3}, give: []int{0}}
	for _, root := range treeOf(all) {
		t.addTwig(root, "", "", "")
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	return problemOf(c)
}

// addTwig adds a row for a branch and those for what hangs from it. before is what the lines of the tree draw in front
// of its siblings, turn where it hangs from them, and below what they draw in front of its own twigs.
func (t *table) addTwig(w *twig, before, turn, below string) {
	name, fork := w.Name, ""
	if w.Active {
		name += " *"
	}
	if turn != "" {
		fork = humanCount(w.Shared)
	}
	t.add(before+turn+name, fork, humanCount(w.Messages), humanSize(w.Bytes))
	if w.Active {
		t.style(0, greener)
	}
	for i, twig := range w.twigs {
		if i == len(w.twigs)-1 {
			t.addTwig(twig, before+below, "└─ ", "   ")
		} else {
			t.addTwig(twig, before+below, "├─ ", "│  ")
		}
	}
}
