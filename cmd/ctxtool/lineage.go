package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/branch"
)

// lineage is a branch and the lines that own its messages, in order.
type lineage struct {
	ctxdir.BranchInfo
	segments []branch.Segment
}

// lineagesOf returns those of every branch, in order of creation.
func lineagesOf(ctx context.Context, c *ctxdir.Context) ([]lineage, error) {
	branches, err := c.Branches(ctx)
	if err != nil {
		return nil, err
	}
	m := c.Metadata()
	all := make([]lineage, len(branches))
	for i, b := range branches {
		segments, err := branch.Segments(m, b.Line, 0, b.Messages)
		if err != nil {
			return nil, err
		}
		all[i] = lineage{b, segments}
	}
	return all, nil
}

// shared is how many messages two branches begin with that are the same.
func (l *lineage) shared(other *lineage) int64 {
	for i, s := range l.segments {
		if i == len(other.segments) || s.Line != other.segments[i].Line {
			return s.From
		}
		if o := other.segments[i]; s.To != o.To {
			return min(s.To, o.To)
		}
	}
	return l.Messages
}

// forksOff returns the names of the branches that leave one, by the position where they do.
func forksOff(all []lineage, name string) map[int64][]string {
	shown := slices.IndexFunc(all, func(l lineage) bool { return l.Name == name })
	if shown < 0 {
		return nil
	}
	forks := map[int64][]string{}
	for i := range all {
		if at := all[shown].shared(&all[i]); i != shown && at > 0 {
			forks[at] = append(forks[at], all[i].Name)
		}
	}
	return forks
}

// twig is a branch in a tree of them.
type twig struct {
	lineage
	at    int64 // how many messages it has of the one that it hangs from
	twigs []*twig
}

// treeOf hangs each branch from the earlier one that it shares most with, its parent if others share no more. Lines without a name, which
// branches may have been forked from, so need no place of their own.
func treeOf(all []lineage) (roots []*twig) {
	var grown []*twig
	for _, l := range all {
		t := &twig{lineage: l}
		var from *twig
		for _, g := range grown {
			at := l.shared(&g.lineage)
			if at > t.at || at == t.at && g.Name == l.Parent {
				t.at, from = at, g
			}
		}
		if from == nil {
			roots = append(roots, t)
		} else {
			from.twigs = append(from.twigs, t)
		}
		grown = append(grown, t)
	}
	for _, t := range grown {
		slices.SortStableFunc(t.twigs, func(x, y *twig) int { return cmp.Compare(x.at, y.at) })
	}
	return roots
}
