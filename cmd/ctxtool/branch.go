package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/spf13/cobra"
)

func (a *app) branchCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "branch",
		Short:                      "List and change the branches of a context",
		Long:                       "List and change the branches of a context. A change to one branch never changes what another one shows.",
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

// branchVerb completes a verb with so many arguments, whose first one is a context.
func (a *app) branchVerb(
	cmd cobra.Command, args int, do func(ctx context.Context, c *ctxdir.Context, args []string) error, opts ...ctxdir.Options,
) *cobra.Command {
	cmd.Annotations, cmd.Args = exits("", ofStores...), between(args, args)
	cmd.ValidArgsFunction, cmd.RunE = a.completeContexts(1), a.onContext(do, opts...)
	return &cmd
}

// branchInfo describes a branch.
func branchInfo(ctx context.Context, c *ctxdir.Context, name string) (ctxdir.BranchInfo, error) {
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

// printBranch prints the current state of a branch.
func (a *app) printBranch(ctx context.Context, c *ctxdir.Context, name string) error {
	info, err := branchInfo(ctx, c, name)
	if err != nil {
		return err
	}
	return a.printBranches([]ctxdir.BranchInfo{info})
}

func (a *app) branchLsCmd() *cobra.Command {
	all := false
	cmd := a.branchVerb(cobra.Command{
		Use:     "ls CONTEXT",
		Short:   "List the branches in order of creation",
		Long:    "List the branches in order of creation. Branches with a kind, such as that of moments, need --all.",
		Example: "  ctxtool branch ls 7c2f",
	}, 1, func(ctx context.Context, c *ctxdir.Context, _ []string) error {
		branches, err := c.Branches(ctx)
		if err != nil {
			return err
		}
		if !all {
			branches = ofConversation(branches)
		}
		if err := a.printBranches(branches); err != nil {
			return err
		}
		return problemOf(c)
	}, ctxdir.Options{ReadOnly: true})
	cmd.Annotations = exits("the context has a problem", ofStores...)
	cmd.Flags().BoolVar(&all, "all", false, "list branches with a kind, too")
	return cmd
}

func (a *app) branchNewCmd() *cobra.Command {
	return a.branchVerb(cobra.Command{
		Use:     "new CONTEXT NAME",
		Short:   "Create an empty branch",
		Example: "  ctxtool branch new 7c2f notes",
	}, 2, func(ctx context.Context, c *ctxdir.Context, args []string) error {
		b, err := c.NewBranch(ctx, args[0])
		if err != nil {
			return nameError(args[0], err)
		}
		return a.printBranch(ctx, c, b.Name())
	})
}

func (a *app) branchForkCmd() *cobra.Command {
	var from, at string
	cmd := a.branchVerb(cobra.Command{
		Use:   "fork CONTEXT NAME",
		Short: "Create a branch from another one",
		Long: `Create branch NAME from another branch. --at POSITION keeps the messages before that position;
--at ID keeps those up to and including the message with this id or id prefix. Digits alone are a
position. Without --at, the new branch shows all messages. fork copies nothing, and does not
change the active branch.`,
		Example: "  ctxtool branch fork 7c2f retry --at 12\n  ctxtool branch fork 7c2f again --at 0197f3c2-7a1e",
	}, 2, func(ctx context.Context, c *ctxdir.Context, args []string) error {
		b, err := branchOf(c, from)
		if err != nil {
			return err
		}
		position, err := b.Len(ctx)
		if err == nil && at != "" {
			var point messageRef
			if point, err = parseMessageRef(at); err == nil {
				position, err = point.endOf(ctx, c, b)
			}
		}
		if err != nil {
			return err
		}
		forked, err := b.Fork(ctx, args[0], position)
		if err != nil {
			return nameError(args[0], err)
		}
		return a.printBranch(ctx, c, forked.Name())
	})
	a.branchFlag(cmd, &from, "from", "fork `BRANCH` instead of the active one")
	cmd.Flags().StringVar(&at, "at", "", "fork before `POSITION`, or after the message with this id or id prefix")
	return cmd
}

// nameError turns an error about the name of a branch into a usage error.
func nameError(name string, err error) error {
	if errors.Is(err, ctxdir.ErrInvalid) {
		return badArgument("", "branch name %q: %v", plain.Shorten(name, 60), cause(err))
	}
	return err
}

func (a *app) branchSwitchCmd() *cobra.Command {
	cmd := a.branchVerb(cobra.Command{
		Use:     "switch CONTEXT NAME",
		Short:   "Make a branch the active one",
		Example: "  ctxtool branch switch 7c2f alt",
	}, 2, func(ctx context.Context, c *ctxdir.Context, args []string) error {
		if err := c.Switch(ctx, args[0]); err != nil {
			return err
		}
		return a.printBranch(ctx, c, args[0])
	})
	cmd.ValidArgsFunction = a.completeBranches
	return cmd
}

func (a *app) branchRenameCmd() *cobra.Command {
	cmd := a.branchVerb(cobra.Command{
		Use:     "rename CONTEXT NAME NEW-NAME",
		Short:   "Rename a branch",
		Example: "  ctxtool branch rename 7c2f alt first-try",
	}, 3, func(ctx context.Context, c *ctxdir.Context, args []string) error {
		b, err := c.Branch(args[0])
		if err != nil {
			return err
		}
		if b, err = b.Rename(ctx, args[1]); err != nil {
			return nameError(args[1], err)
		}
		return a.printBranch(ctx, c, b.Name())
	})
	cmd.ValidArgsFunction = a.completeBranches
	return cmd
}

func (a *app) branchRmCmd() *cobra.Command {
	cmd := a.branchVerb(cobra.Command{
		Use:   "rm CONTEXT NAME",
		Short: "Remove a branch",
		Long: `Remove a branch. Its messages stay in place for at least a week, and "ctxtool trash restore NAME"
restores the branch. After that, garbage collection removes the messages that no other branch
shows.`,
		Example: "  ctxtool branch rm 7c2f alt --dry-run\n  ctxtool branch rm 7c2f alt",
	}, 2, func(ctx context.Context, c *ctxdir.Context, args []string) error {
		b, err := c.Branch(args[0])
		if err != nil {
			return err
		}
		info, err := branchInfo(ctx, c, args[0])
		if err != nil {
			return err
		}
		if a.dryRun && info.Active {
			err = &ctxdir.Error{Op: "remove", Context: c.ID(), Branch: info.Name, Err: branch.ErrActive}
		} else if !a.dryRun {
			err = b.Remove(ctx)
		}
		if err != nil {
			return err
		}
		if !a.json {
			if a.dryRun {
				a.note("would remove branch %q", info.Name)
			}
			err := a.printBranches([]ctxdir.BranchInfo{info})
			a.noteUndo(info.Name, false)
			return err
		}
		r := branchRow(info)
		r.DryRun = a.dryRun
		return a.record(r)
	})
	cmd.ValidArgsFunction = a.completeBranches
	a.dryRunFlag(cmd)
	a.undoable(cmd)
	return cmd
}

func (a *app) branchRewindCmd() *cobra.Command {
	var (
		name string
		to   int64
	)
	cmd := a.branchVerb(cobra.Command{
		Use:   "rewind CONTEXT --to POSITION",
		Short: "Rewind a branch to a position",
		Long: `Rewind a branch: it keeps only the messages before a position. Other branches still show the later
messages. If no branch shows them, the trash lists them, and "ctxtool trash restore BRANCH"
restores them as a branch; garbage collection removes them after the grace period.`,
		Example: "  ctxtool branch rewind 7c2f --to 10 --dry-run\n  ctxtool branch rewind 7c2f --branch alt --to 10",
	}, 1, func(ctx context.Context, c *ctxdir.Context, _ []string) error {
		b, err := branchOf(c, name)
		if err != nil {
			return err
		}
		if a.dryRun {
			return a.planRewind(ctx, c, b.Name(), to)
		}
		n, err := b.Len(ctx)
		if err == nil {
			err = b.Rewind(ctx, to)
		}
		if err == nil {
			err = a.printBranch(ctx, c, b.Name())
		}
		if err == nil && to < n {
			a.noteUndo(b.Name(), n-to > 1)
		}
		return err
	})
	a.branchFlag(cmd, &name, "branch", "rewind `BRANCH` instead of the active one")
	cmd.Flags().Int64Var(&to, "to", 0, "keep the messages before `POSITION`")
	a.dryRunFlag(cmd)
	a.undoable(cmd)
	rewind := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !cmd.Flags().Changed("to"):
			return usage(cmd, "--to is required")
		case to < 0:
			return usage(cmd, "--to must not be negative")
		}
		return rewind(cmd, args)
	}
	return cmd
}

// planRewind prints the branch as it would be. It leaves the size unchanged, which only reading would reveal.
func (a *app) planRewind(ctx context.Context, c *ctxdir.Context, name string, to int64) error {
	info, err := branchInfo(ctx, c, name)
	if err != nil {
		return err
	}
	if to > info.Messages {
		err := fmt.Errorf("%w %d: the branch has %s", ctxdir.ErrPosition, to, plain.Count(info.Messages, "message"))
		return &ctxdir.Error{Op: "rewind", Context: c.ID(), Branch: info.Name, Err: err}
	}
	if !a.json {
		a.note("would rewind branch %q from %s to %s", info.Name, plain.Count(info.Messages, "message"), plain.Number(to))
		return nil
	}
	r := branchRow(info)
	r.Messages, r.DryRun = to, true
	return a.record(r)
}
