package engine

import (
	"github.com/ctxdir/ctxdir/branch"
)

// relateBranches sets for each branch the earlier branch that shares the most messages with it; among equals, the
// parent. So lines without a name, from which branches may have been forked, need no place in a tree of branches.
func relateBranches(m *Metadata, infos []BranchInfo) error {
	histories := make([][]branch.Segment, len(infos))
	for i := range infos {
		b := &infos[i]
		var err error
		if histories[i], err = branch.Segments(m, b.Line, 0, b.Messages); err != nil {
			return err
		}
		for j := range i {
			n := sharedLength(histories[i], histories[j])
			if n > b.Shared || n > 0 && n == b.Shared && infos[j].Name == b.Parent {
				b.From, b.Shared = infos[j].Name, n
			}
		}
	}
	return nil
}

// sharedLength returns the number of messages that two histories have in common at their beginnings.
func sharedLength(a, b []branch.Segment) (n int64) {
	for i := range min(len(a), len(b)) {
		if a[i].Line != b[i].Line {
			break
		}
		n = min(a[i].To, b[i].To)
		if a[i].To != b[i].To {
			break
		}
	}
	return n
}
