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
		Long: `Draw the branches of a context as a tree. Each branch hangs from its parent, with which it shares
its first messages. FORK is the number of messages shared with the parent, MESSAGES the number of
all messages that the branch shows. A star marks the active branch.`,
		Example: `  ctxtool tree 7c2f
  ctxtool --json tree 7c2f`,
		Annotations:       exits("the context has a problem", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE:              a.onContext(a.tree, ctxdir.WithReadOnly()),
	}
}

func (a *app) tree(ctx context.Context, c *ctxdir.Context, _ []string) error {
	all, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	print := a.printTree
	if a.json {
		print = a.printBranches
	}
	if err := print(ofConversation(all)); err != nil {
		return err
	}
	return problemOf(c)
}

func (a *app) printTree(all []ctxdir.BranchInfo) error {
	a.page()
	t := table{head: []string{"BRANCH", "FORK", "MESSAGES", "SIZE"}, right: []int{1, 2, 3}, shrink: []int{0}, names: []int{0}}
	for _, root := range treeOf(all) {
		t.addNode(root, "", "", "")
	}
	return a.printTable(&t)
}

// addNode adds the rows of a branch and its children. prefix draws the lines of its ancestors, corner joins it to its
// parent, and below continues its own line in the rows of its children.
func (t *table) addNode(w *branchNode, prefix, corner, below string) {
	name, fork := w.Name, ""
	if w.Active {
		name += " *"
	}
	if corner != "" {
		fork = humanCount(w.Shared)
	}
	t.add(nil, prefix+corner+name, fork, humanCount(w.Messages), humanSize(w.Bytes))
	if w.Active {
		t.style(0, boldGreen)
	}
	for i, child := range w.children {
		if i == len(w.children)-1 {
			t.addNode(child, prefix+below, "└─ ", "   ")
		} else {
			t.addNode(child, prefix+below, "├─ ", "│  ")
		}
	}
}
