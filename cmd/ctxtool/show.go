package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/attach"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/spf13/cobra"
)

func (a *app) showCmd() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show CONTEXT [A:B]",
		Short: "Show the messages of a branch in order",
		Long: `Show the messages of a branch in order: all, the last N that are shown, or those at positions A:B,
which are A to B-1. "A:" ends with the last message, ":B" begins with the first; --from A --to B
are the same. Positions begin at 0, and count every message of the branch, including bookkeeping
that is left out and results that are shown with their calls. N counts the messages that have a
header line; with --json, every message.

show folds thoughts (~), tool calls (>) and tool results (<) to one line each, unless --full is
given. The results of a tool follow its call, and a call that changes a file says how many lines
it adds and removes. For an attachment (+) show prints type and size. A line marks the position at
which another branch forks. Bookkeeping of agent tools, such as progress and snapshots, is left
out without --all.

--json prints every message verbatim, bookkeeping too.`,
		Example: `  ctxtool show 7c2f --last 20
  ctxtool show 7c2f --branch alt --full
  ctxtool show 7c2f --tools none --role user
  ctxtool show 7c2f 24:
  ctxtool --json show 7c2f 100:150`,
		Annotations:       exits("some messages are unavailable or incomplete", ofStores...),
		Args:              between(1, 2),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to, err := f.positions(cmd, args)
			if err != nil {
				return err
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return a.show(cmd.Context(), c, &f, from, to)
			}, ctxdir.Options{ReadOnly: true, MemoryLimit: maxParsedBody})
		},
	}
	flags := cmd.Flags()
	a.branchFlag(cmd, &f.branch, "branch", "show `BRANCH` instead of the active one")
	flags.Int64Var(&f.last, "last", 0, "show the last `N` messages that are shown")
	flags.StringVar(&f.span, "range", "", "show the messages at positions `A:B`, excluding B")
	flags.Int64Var(&f.from, "from", 0, "show the messages from position `A`")
	flags.Int64Var(&f.to, "to", math.MaxInt64, "show the messages before position `B`")
	flags.Lookup("to").DefValue = "0" // none to show in the help
	flags.StringVar(&f.save, "save-attachments", "", "save attached files to the folder `DIR`")
	flags.BoolVar(&f.full, "full", false, "show thoughts, tool calls and results in full")
	flags.BoolVar(&f.all, "all", false, "show bookkeeping, too")
	flags.StringVar(&f.tools, "tools", "", "show tool calls and results as `FORM`: none, short or full")
	flags.StringVar(&f.role, "role", "", "show messages of the role `ROLE` only")
	flags.StringVar(&f.typ, "type", "", "show messages of the type `TYPE` only")
	flags.BoolVar(&f.noContent, "no-content", false, "show messages without their content")
	return cmd
}

// positions returns the positions to show, [from, to). A negative from counts from the end.
func (f *showFlags) positions(cmd *cobra.Command, args []string) (from, to int64, err error) {
	to = math.MaxInt64
	var ways []string // to choose messages by position
	for _, name := range []string{"last", "range"} {
		if cmd.Flags().Changed(name) {
			ways = append(ways, "--"+name)
		}
	}
	if f.from != 0 || cmd.Flags().Changed("to") {
		ways = append(ways, "--from and --to")
	}
	if len(args) > 1 {
		ways = append(ways, "A:B")
	}
	switch {
	case len(ways) > 1:
		return 0, 0, usage(cmd, "%s cannot be used together", strings.Join(ways, " and "))
	case f.from < 0 || f.to < 0:
		return 0, 0, usage(cmd, "--from and --to must not be negative")
	case f.to < f.from:
		return 0, 0, usage(cmd, "--to %d is before --from %d", f.to, f.from)
	case f.tools != "" && f.tools != toolsNone && f.tools != toolsShort && f.tools != toolsFull:
		return 0, 0, usage(cmd, "--tools: unknown form %q; use one of: %s, %s, %s", f.tools, toolsNone, toolsShort, toolsFull)
	case cmd.Flags().Changed("last") && f.last < 0:
		return 0, 0, usage(cmd, "--last must not be negative")
	case cmd.Flags().Changed("last"):
		from = -f.last
		if f.last == 0 {
			to = 0
		}
	case cmd.Flags().Changed("range"), len(args) > 1:
		if from, to, err = parseRange(append(args, f.span)[1]); err != nil {
			return 0, 0, usage(cmd, "range: %v", err)
		}
	default:
		from, to = f.from, f.to
	}
	return from, to, nil
}

// parseRange parses A:B; either may be missing.
func parseRange(text string) (from, to int64, err error) {
	a, b, ok := strings.Cut(text, ":")
	to = math.MaxInt64
	if ok && a != "" {
		from, err = parsePosition(a)
	}
	if ok && b != "" && err == nil {
		to, err = parsePosition(b)
	}
	switch {
	case !ok:
		return 0, 0, fmt.Errorf("expected positions as A:B, such as 24:30 or 24:, got %q", text)
	case err != nil:
		return 0, 0, err
	case to < from:
		return 0, 0, fmt.Errorf("%q: the end is before the start", text)
	}
	return from, to, nil
}

func parsePosition(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a position", text)
	}
	return int64(n), nil
}

func (a *app) show(ctx context.Context, c *ctxdir.Context, f *showFlags, from, to int64) error {
	b, err := branchOf(c, f.branch)
	if err == nil && from < 0 {
		from, to, err = f.lastShown(ctx, b, -from, a.json)
	}
	if err != nil {
		return err
	}
	a.page()
	print, flush := a.messagePrinter(ctx, c, b.Name(), f)
	shown := 0
	var lacks incompleteCount
	var files *attach.Saver
	if f.save != "" {
		if files, err = attach.NewSaver(f.save); err != nil {
			return err
		}
		defer files.Close() //nolint:errcheck // a folder
	}
	err = eachMessage(ctx, b, from, to, func(m *ctxdir.Message) error {
		if !f.wants(m) {
			return nil
		}
		shown++
		s, err := record.Load(ctx, m, a.content(f.noContent))
		if err != nil {
			return err
		}
		if files != nil {
			if err := files.Message(ctx, m); err != nil {
				return err
			}
		}
		err = print(s)
		lacks.add(s)
		return err
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = lacks.err(c.ID())
	}
	switch {
	case err != nil:
		return err
	case files != nil:
		a.note("saved %s in %s", plain.Count(files.Saved, "file"), f.save)
	case shown == 0 && !a.json:
		n, _ := b.Len(ctx)
		a.note("no messages to show: the branch has %s", plain.Count(n, "message"))
	}
	return problemOf(c)
}

// messagePrinter returns a function that prints a message, as a record or for people, and one to call after the last.
func (a *app) messagePrinter(
	ctx context.Context, c *ctxdir.Context, branch string, f *showFlags,
) (print func(m *record.Loaded) error, flush func() error) {
	if a.json {
		return func(m *record.Loaded) error {
			return m.Write(ctx, a.out, m.Head(branch))
		}, func() error { return nil }
	}
	r := a.newRenderer(f.full)
	r.headsOnly, r.tools = f.noContent, cmp.Or(f.tools, r.tools)
	// A damaged branch does not prevent showing another one.
	if all, err := c.Branches(ctx); err == nil {
		r.forks = forksOff(all, branch)
	}
	first := func(m *record.Loaded) {
		if r.forked < 0 {
			r.forked = m.Position
		}
	}
	r.forked = -1
	if f.noContent {
		return func(m *record.Loaded) error { first(m); return r.message(m) }, func() error { return nil }
	}
	v := f.reader(r.turn)
	return func(m *record.Loaded) error { first(m); return v.Add(m) }, func() error {
		err := v.Flush()
		if err == nil && v.LeftOut > 0 {
			a.note("left out %s of bookkeeping; show them with --all", plain.Count(v.LeftOut, "record"))
		}
		return err
	}
}
