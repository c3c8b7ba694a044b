package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
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
		RunE:              a.onContext(a.tree, ctxdir.Options{ReadOnly: true}),
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
	t := term.Table{Head: []string{"BRANCH", "FORK", "MESSAGES", "SIZE"}, Right: []int{1, 2, 3}, Shrink: []int{0}, Names: []int{0}}
	for _, root := range treeOf(all) {
		addNode(&t, root, "", "", "")
	}
	return a.printTable(&t)
}

// addNode adds the rows of a branch and its children. prefix draws the lines of its ancestors, corner joins it to its
// parent, and below continues its own line in the rows of its children.
func addNode(t *term.Table, w *branchNode, prefix, corner, below string) {
	name, fork := w.Name, ""
	if w.Active {
		name += " *"
	}
	if corner != "" {
		fork = plain.Number(w.Shared)
	}
	t.Add(nil, prefix+corner+name, fork, plain.Number(w.Messages), plain.Size(w.Bytes))
	if w.Active {
		t.Style(0, term.BoldGreen)
	}
	for i, child := range w.children {
		if i == len(w.children)-1 {
			addNode(t, child, prefix+below, "└─ ", "   ")
		} else {
			addNode(t, child, prefix+below, "├─ ", "│  ")
		}
	}
}
