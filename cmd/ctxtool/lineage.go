package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir"
)

// forksOff returns the names of the branches that fork off a branch, by position.
func forksOff(all []ctxdir.BranchInfo, name string) map[int64][]string {
	order := map[string]int{}
	for i, b := range all {
		order[b.Name] = i
	}
	shown, ok := order[name]
	if !ok {
		return nil
	}
	forks := map[int64][]string{}
	for i, b := range all {
		if at := sharedBy(all, order, shown, i); i != shown && at > 0 {
			forks[at] = append(forks[at], b.Name)
		}
	}
	return forks
}

// sharedBy returns the number of messages that two branches share: in the tree of branches, the minimum that any branch
// on the path between them shares with its parent.
func sharedBy(all []ctxdir.BranchInfo, order map[string]int, i, j int) int64 {
	n := int64(math.MaxInt64)
	for i != j {
		later := &all[max(i, j)]
		if later.From == "" {
			return 0
		}
		n = min(n, later.Shared)
		i, j = min(i, j), order[later.From]
	}
	return n
}

// branchNode is a branch in the tree of branches.
type branchNode struct {
	ctxdir.BranchInfo
	children []*branchNode
}

// treeOf attaches each branch to the one that it shares its first messages with.
func treeOf(all []ctxdir.BranchInfo) (roots []*branchNode) {
	nodes := map[string]*branchNode{}
	for _, b := range all {
		t := &branchNode{BranchInfo: b}
		nodes[b.Name] = t
		if from := nodes[b.From]; from != nil {
			from.children = append(from.children, t)
		} else {
			roots = append(roots, t)
		}
	}
	for _, t := range nodes {
		slices.SortStableFunc(t.children, func(x, y *branchNode) int { return cmp.Compare(x.Shared, y.Shared) })
	}
	return roots
}
