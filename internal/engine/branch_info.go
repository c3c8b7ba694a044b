package engine

import (
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// BranchInfo describes a branch. The sizes come from the index alone.
type BranchInfo struct {
	Name     string
	Line     uuid.UUID
	Parent   string // the branch whose line it was forked from, or that line's id; empty for none
	Base     int64  // number of messages that it inherits
	From     string // the earlier branch that shares the most messages with it; empty for none
	Shared   int64  // number of messages that both begin with
	Messages int64  // number of messages that it shows
	Bytes    int64  // of its own line's messages
	Archived int64  // of these, those that have no files
	Active   bool
	Lines    []branch.Segment // the lines that own what it shows, the oldest first
	Metadata Object           // further members, as in metadata.json
}

// DescribeBranch describes a branch of a version of the metadata.
func DescribeBranch(m *Metadata, b *ctxfolder.Branch, counts map[uuid.UUID]index.Counts) (info BranchInfo, err error) {
	l, ok := m.Line(b.Line)
	if !ok {
		return info, fmt.Errorf("%w: branch %q has no line", ErrMetadata, b.Name)
	}
	info = BranchInfo{
		Name: b.Name, Line: l.ID, Base: l.Base, Messages: max(counts[l.ID].End(), l.Base), Bytes: counts[l.ID].Bytes,
		Archived: min(l.ArchivedBytes, counts[l.ID].Bytes),
		Active:   b.Name == m.ActiveBranch, Metadata: b.Extra,
	}
	if info.Lines, err = branch.Lines(m, l.ID, info.Messages); err != nil {
		return info, err
	}
	slices.Reverse(info.Lines)
	switch parent := BranchOfLine(m, l.Parent); {
	case parent != nil:
		info.Parent = parent.Name
	case l.Parent != uuid.Nil:
		info.Parent = l.Parent.String()
	}
	return info, nil
}

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
