package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/branch"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type branchRecord struct {
	Record   string `json:"record"`
	Name     string `json:"name"`
	Parent   string `json:"parent,omitempty"`
	Base     *int64 `json:"base,omitempty"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	Active   bool   `json:"active"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

func branchRow(b ctxdir.BranchInfo) branchRecord {
	r := branchRecord{Record: "branch", Name: b.Name, Parent: b.Parent, Messages: b.Messages, Bytes: b.Bytes, Active: b.Active}
	if b.Parent != "" {
		r.Base = &b.Base
	}
	return r
}

func (a *app) branchCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "branch",
		Short:                      "List and change the branches of a context",
		Long:                       "List and change the branches of a context. No operation on one branch changes what another one shows.",
		Example:                    "  ctxtool branch ls 7c2f\n  ctxtool branch fork 7c2f retry --at 12\n  ctxtool branch switch 7c2f retry",
		Annotations:                exits("the context has a problem", ofStores...),
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       needVerb,
	}
	cmd.AddCommand(
		a.branchLsCmd(), a.branchNewCmd(), a.branchForkCmd(), a.branchSwitchCmd(), a.branchRenameCmd(), a.branchRmCmd(),
		a.branchRewindCmd(),
	)
	return cmd
}

// branchVerb is a verb whose first argument is a context.
func (a *app) branchVerb(
	use, short, example string,
	args int,
	do func(ctx context.Context, c *ctxdir.Context, args []string) error,
	opts ...ctxdir.Option,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Annotations: exits("", ofStores...), Args: between(args, args),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return do(cmd.Context(), c, args[1:])
			}, opts...)
		},
	}
}

// infoOf describes a branch.
func infoOf(ctx context.Context, c *ctxdir.Context, name string) (ctxdir.BranchInfo, error) {
	branches, err := c.Branches(ctx)
	if err != nil {
		return ctxdir.BranchInfo{}, err
	}
	for _, b := range branches {
		if b.Name == name {
			return b, nil
		}
	}
	return ctxdir.BranchInfo{}, &ctxdir.Error{Op: "describe", Context: c.ID(), Err: fmt.Errorf("%w: branch %q", ctxdir.ErrNotExist, name)}
}

// printBranch prints a branch as it now is.
func (a *app) printBranch(ctx context.Context, c *ctxdir.Context, name string) error {
	info, err := infoOf(ctx, c, name)
	if err != nil {
		return err
	}
	if a.json {
		return a.record(branchRow(info))
	}
	return a.branchTable([]ctxdir.BranchInfo{info})
}

func (a *app) branchTable(branches []ctxdir.BranchInfo) error {
	t := table{head: []string{"", "BRANCH", "MESSAGES", "SIZE", "FROM"}, right: []int{2, 3}, give: []int{1, 4}}
	for _, b := range branches {
		mark, from := "", ""
		if b.Active {
			mark = "*"
		}
		if b.Parent != "" {
			from = forkedFrom(b)
		}
		t.add(mark, b.Name, humanCount(b.Messages), humanSize(b.Bytes), from)
		if b.Active {
			t.style(0, greener)
			t.style(1, greener)
		}
	}
	return a.printTable(&t)
}

// forkedFrom says where a branch begins on another one, or on a line that no branch has any more.
func forkedFrom(b ctxdir.BranchInfo) string {
	parent := oneLine(b.Parent)
	if id, err := uuid.Parse(parent); err == nil {
		parent = "line …" + ending(id)
	}
	return fmt.Sprintf("%s at %s", parent, humanCount(b.Base))
}

func (a *app) branchLsCmd() *cobra.Command {
	cmd := a.branchVerb(
		"ls CONTEXT",
		"List the branches in order of creation",
		"  ctxtool branch ls 7c2f",
		1,
		func(ctx context.Context, c *ctxdir.Context, _ []string) error {
			branches, err := c.Branches(ctx)
			if err != nil {
				return err
			}
			if !a.json {
				if err := a.branchTable(branches); err != nil {
					return err
				}
				return problemOf(c)
			}
			for _, b := range branches {
				if err := a.record(branchRow(b)); err != nil {
					return err
				}
			}
			return problemOf(c)
		},
		ctxdir.WithReadOnly(),
	)
	cmd.Annotations = exits("the context has a problem", ofStores...)
	return cmd
}

func (a *app) branchNewCmd() *cobra.Command {
	return a.branchVerb(
		"new CONTEXT NAME",
		"Add an empty branch",
		"  ctxtool branch new 7c2f notes",
		2,
		func(ctx context.Context, c *ctxdir.Context, args []string) error {
			b, err := c.NewBranch(ctx, args[0])
			if err != nil {
				return nameError(args[0], err)
			}
			return a.printBranch(ctx, c, b.Name())
		},
	)
}

func (a *app) branchForkCmd() *cobra.Command {
	var from, at string
	cmd := a.branchVerb(
		"fork CONTEXT NAME",
		"Add a branch that begins like another one",
		"  ctxtool branch fork 7c2f retry --at 12\n  ctxtool branch fork 7c2f again --from alt --at 0197f3c2-7a1e-7c55-9a3e-5f2f3c0d9b11",
		2,
		func(ctx context.Context, c *ctxdir.Context, args []string) error {
			point, err := parsePoint(at)
			if err != nil {
				return err
			}
			b, err := branchOf(c, from)
			if err != nil {
				return err
			}
			if at == "" {
				if point.position, err = b.Len(ctx); err != nil {
					return err
				}
			}
			if point.id != uuid.Nil {
				m, err := b.Message(ctx, point.id)
				if err != nil {
					return during("fork", err)
				}
				point.position = m.Position + 1
			}
			forked, err := b.Fork(ctx, args[0], point.position)
			if err != nil {
				return nameError(args[0], err)
			}
			return a.printBranch(ctx, c, forked.Name())
		},
	)
	cmd.Long = `Add a branch NAME that begins like another one: with its messages before a position, or up to and with the message
of an id, or with all. Nothing is copied, and the active branch stays the same.`
	a.branchFlag(cmd, &from, "from", "the `BRANCH` to fork; the active one if not given")
	cmd.Flags().StringVar(&at, "at", "", "a `POSITION` or a message's whole id; the end if not given")
	return cmd
}

// point is where to fork: a position, or a message.
type point struct {
	position int64
	id       uuid.UUID
}

func parsePoint(text string) (point, error) {
	if text == "" {
		return point{}, nil
	}
	if id, err := uuid.Parse(text); err == nil && len(text) == 36 {
		return point{id: id}, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return point{}, &usageError{fmt.Sprintf("--at: %q is neither a position nor a message's whole id", text), `"ctxtool show" tells both`}
	}
	return point{position: int64(n)}, nil
}

// nameError makes an error about a branch's name one about the arguments.
func nameError(name string, err error) error {
	if isInvalid(err) {
		return &usageError{fmt.Sprintf("branch name %q: %v", shorten(name, 60), cause(err)), ""}
	}
	return err
}

func (a *app) branchSwitchCmd() *cobra.Command {
	cmd := a.branchVerb(
		"switch CONTEXT NAME",
		"Make a branch the active one",
		"  ctxtool branch switch 7c2f alt",
		2,
		func(ctx context.Context, c *ctxdir.Context, args []string) error {
			if err := c.Switch(ctx, args[0]); err != nil {
				return err
			}
			return a.printBranch(ctx, c, args[0])
		},
	)
	cmd.ValidArgsFunction = a.completeBranches
	return cmd
}

func (a *app) branchRenameCmd() *cobra.Command {
	cmd := a.branchVerb(
		"rename CONTEXT NAME NEW-NAME",
		"Give a branch another name",
		"  ctxtool branch rename 7c2f alt first-try",
		3,
		func(ctx context.Context, c *ctxdir.Context, args []string) error {
			if err := c.RenameBranch(ctx, args[0], args[1]); err != nil {
				return nameError(args[1], err)
			}
			b, err := c.Branch(args[1])
			if err != nil {
				return err
			}
			return a.printBranch(ctx, c, b.Name())
		},
	)
	cmd.ValidArgsFunction = a.completeBranches
	return cmd
}

func (a *app) branchRmCmd() *cobra.Command {
	cmd := a.branchVerb(
		"rm CONTEXT NAME",
		"Take a branch's name away; its messages stay until they are collected",
		"  ctxtool branch rm 7c2f alt --dry-run\n  ctxtool branch rm 7c2f alt",
		2,
		func(ctx context.Context, c *ctxdir.Context, args []string) error {
			if _, err := c.Branch(args[0]); err != nil {
				return err
			}
			info, err := infoOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			if a.dryRun && info.Active {
				err = fmt.Errorf("branch %q: %w", info.Name, branch.ErrActive)
			} else if !a.dryRun {
				err = c.RemoveBranch(ctx, args[0])
			}
			if err != nil {
				return err
			}
			if !a.json {
				return a.branchTable([]ctxdir.BranchInfo{info})
			}
			r := branchRow(info)
			r.DryRun = a.dryRun
			return a.record(r)
		},
	)
	cmd.ValidArgsFunction = a.completeBranches
	a.dryRunFlag(cmd)
	return cmd
}

func (a *app) branchRewindCmd() *cobra.Command {
	var (
		name string
		to   int64
	)
	cmd := a.branchVerb(
		"rewind CONTEXT --to POSITION",
		"Let a branch show only the messages before a position",
		"  ctxtool branch rewind 7c2f --to 10 --dry-run\n  ctxtool branch rewind 7c2f --branch alt --to 10",
		1,
		nil,
	)
	cmd.Long = `Let a branch show only its messages before a position. Those behind it stay where they are, other branches go on
showing them, and gc collects what no branch shows.`
	a.branchFlag(cmd, &name, "branch", "the `BRANCH`; the active one if not given")
	cmd.Flags().Int64Var(&to, "to", 0, "the `POSITION` of the first message that goes")
	a.dryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !cmd.Flags().Changed("to"):
			return usage(cmd, "--to is missing")
		case to < 0:
			return usage(cmd, "--to: a position is not below 0")
		}
		return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
			b, err := branchOf(c, name)
			if err != nil {
				return err
			}
			if !a.dryRun {
				if err := b.Rewind(cmd.Context(), to); err != nil {
					return err
				}
				return a.printBranch(cmd.Context(), c, b.Name())
			}
			return a.planRewind(cmd.Context(), c, b.Name(), to)
		})
	}
	return cmd
}

// planRewind prints the branch as it would be. The size of what stays is not known without reading.
func (a *app) planRewind(ctx context.Context, c *ctxdir.Context, name string, to int64) error {
	info, err := infoOf(ctx, c, name)
	if err != nil {
		return err
	}
	if to > info.Messages {
		return fmt.Errorf("rewind to %d: %w out of range: branch %q shows %d messages", to, ctxdir.ErrPosition, info.Name, info.Messages)
	}
	if !a.json {
		a.note("branch %q would go from %s to %s messages", info.Name, humanCount(info.Messages), humanCount(to))
		return nil
	}
	r := branchRow(info)
	r.Messages, r.DryRun = to, true
	return a.record(r)
}
