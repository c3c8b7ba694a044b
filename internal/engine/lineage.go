package engine

import (
	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// Relatives are branches and what they show, to find the one that shares the most messages with a line.
type Relatives struct {
	m         *Metadata
	names     []string
	histories [][]branch.Segment
}

// RelativesOf returns the branches of a version of the metadata.
func RelativesOf(m *Metadata, counts map[uuid.UUID]index.Counts) (*Relatives, error) {
	r := &Relatives{m: m}
	for i := range m.Branches {
		info, err := DescribeBranch(m, &m.Branches[i], counts)
		if err == nil {
			err = r.add(info.Name, info.Line, info.Messages)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Relatives) add(name string, line uuid.UUID, messages int64) error {
	history, err := branch.Segments(r.m, line, 0, messages)
	r.names, r.histories = append(r.names, name), append(r.histories, history)
	return err
}

// Of returns the branch that shares the most of the first messages of a line, and how many; among equals, the preferred
// one, or the first.
func (r *Relatives) Of(line uuid.UUID, messages int64, preferred string) (name string, shared int64, err error) {
	history, err := branch.Segments(r.m, line, 0, messages)
	if err != nil {
		return "", 0, err
	}
	for i, other := range r.histories {
		n := sharedLength(history, other)
		if n > shared || n > 0 && n == shared && r.names[i] == preferred {
			name, shared = r.names[i], n
		}
	}
	return name, shared, nil
}

// relateBranches sets for each branch the earlier branch that shares the most messages with it; among equals, the
// parent. So lines without a name, from which branches may have been forked, need no place in a tree of branches.
func relateBranches(m *Metadata, infos []BranchInfo) (err error) {
	r := &Relatives{m: m}
	for i := range infos {
		b := &infos[i]
		if b.From, b.Shared, err = r.Of(b.Line, b.Messages, b.Parent); err != nil {
			return err
		}
		if err := r.add(b.Name, b.Line, b.Messages); err != nil {
			return err
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
