package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir"
)

// forksOff returns the names of the branches that leave one, by the position where they do.
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

// sharedBy returns how many messages two branches have in common. In the tree of branches it is the least that any
// branch on the way from one to the other shares with the branch from which it hangs.
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

// twig is a branch in a tree of branches.
type twig struct {
	ctxdir.BranchInfo
	twigs []*twig
}

// treeOf hangs each branch from the one that it shares its first messages with.
func treeOf(all []ctxdir.BranchInfo) (roots []*twig) {
	grown := map[string]*twig{}
	for _, b := range all {
		t := &twig{BranchInfo: b}
		grown[b.Name] = t
		if from := grown[b.From]; from != nil {
			from.twigs = append(from.twigs, t)
		} else {
			roots = append(roots, t)
		}
	}
	for _, t := range grown {
		slices.SortStableFunc(t.twigs, func(x, y *twig) int { return cmp.Compare(x.Shared, y.Shared) })
	}
	return roots
}
