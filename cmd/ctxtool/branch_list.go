package main

import (
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
)

type branchRecord struct {
	record.Branch
	DryRun bool `json:"dry_run,omitempty"`
}

func branchRow(b ctxdir.BranchInfo) branchRecord {
	r := branchRecord{Branch: record.OfBranch(b)}
	r.Record = "branch"
	return r
}

func (a *app) printBranches(branches []ctxdir.BranchInfo) error {
	t := term.Table{Head: []string{"", "BRANCH", "MESSAGES", "SIZE", "FROM"}, Right: []int{2, 3}, Shrink: []int{4, 1}, Names: []int{1, 4}}
	for _, b := range branches {
		mark := ""
		if b.Active {
			mark = "*"
		}
		t.Add(branchRow(b), mark, b.Name, plain.Number(b.Messages), plain.Size(b.Bytes), beginning(b))
		if b.Active {
			t.Style(0, term.BoldGreen)
			t.Style(1, term.BoldGreen)
		}
	}
	return a.printTable(&t)
}

// forkPoint says where a branch begins on its parent, which may be a line that no branch has any more.
func forkPoint(b ctxdir.BranchInfo) string {
	parent := plain.OneLine(b.Parent)
	if id, err := uuid.Parse(parent); err == nil {
		parent = "line …" + endOf(id)
	}
	return fmt.Sprintf("%s at %s", parent, plain.Number(b.Base))
}

// beginning says up to where a branch is the same as its parent, or as an earlier branch if no branch has that line any more.
func beginning(b ctxdir.BranchInfo) string {
	if _, err := uuid.Parse(b.Parent); err == nil {
		b.Parent, b.Base = b.From, b.Shared
	}
	if b.Parent == "" {
		return ""
	}
	return forkPoint(b)
}

// ofConversation returns the branches without a kind.
func ofConversation(all []ctxdir.BranchInfo) []ctxdir.BranchInfo {
	return slices.DeleteFunc(all, func(b ctxdir.BranchInfo) bool { return !b.Active && moment.BranchKind(b.Extra) != "" })
}
