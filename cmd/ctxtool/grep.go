package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type grepFlags struct {
	ignoreCase, fixed bool
	all               bool
	branch            string
	limit             int
}

func (a *app) grepCmd() *cobra.Command {
	var f grepFlags
	cmd := &cobra.Command{
		Use:   "grep REGEX [CONTEXT…]",
		Short: "Find lines that match a regular expression",
		Long: `Find lines of messages that match a regular expression in the syntax of Go, in the whole store or
in contexts. grep reads every text that a branch shows, including archives and payloads, in the
order of the messages. Bookkeeping of agent tools is left out without --all. It needs no index,
but reads all messages: "ctxtool search" finds words much faster.`,
		Example: `  ctxtool grep 'TODO\(\w+\)'
  ctxtool grep -i -F 'permission denied' 7c2f`,
		Annotations:       exits("a context cannot be read", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			expression := args[0]
			if f.fixed {
				expression = regexp.QuoteMeta(expression)
			}
			if f.ignoreCase {
				expression = "(?i)" + expression
			}
			re, err := regexp.Compile(expression)
			switch {
			case err != nil:
				return usage(cmd, "%v", err)
			case f.limit < 0 || cmd.Flags().Changed("limit") && f.limit == 0:
				return usage(cmd, "--limit must be positive")
			}
			grep := func(ctx context.Context, s *ctxdir.Store, refs []string) error { return a.grep(ctx, s, re, &f, refs) }
			return a.onStore(grep, ctxdir.Options{ReadOnly: true})(cmd, args[1:])
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.ignoreCase, "ignore-case", "i", false, "ignore the difference between upper and lower case")
	flags.BoolVarP(&f.fixed, "fixed-strings", "F", false, "take REGEX as plain text")
	a.branchFlag(cmd, &f.branch, "branch", "only messages that `BRANCH` shows")
	flags.BoolVar(&f.all, "all", false, "look at bookkeeping, too")
	flags.IntVar(&f.limit, "limit", 0, "print at most `N` lines")
	return cmd
}

func (a *app) grep(ctx context.Context, s *ctxdir.Store, re *regexp.Regexp, f *grepFlags, refs []string) error {
	o := search.GrepOptions{Branch: f.branch, Bookkeeping: f.all}
	for _, ref := range refs {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		o.Contexts = append(o.Contexts, id)
	}
	a.page()
	failed, printed, short := 0, 0, shortIDsIn(s)
	var last uuid.UUID
	var copies copies
	for m, err := range search.Grep(ctx, s, re, o) {
		if err != nil {
			if m.Context == uuid.Nil || ctx.Err() != nil || len(refs) == 1 {
				return errors.Join(err, ctx.Err())
			}
			failed++
			a.warnOf(err)
			continue
		}
		if !a.json && copies.have(&m) {
			continue
		}
		if err := a.printMatch(&m, last, short); err != nil {
			return err
		}
		last = m.Context
		if printed++; printed == f.limit {
			break
		}
	}
	if failed > 0 {
		return problems("", "failed to read %s", plain.Count(failed, "context"))
	}
	return ctx.Err()
}

// tag is what agents put around an error that they show the model.
var tag = regexp.MustCompile(`</?[a-z_]+>`)

// copies finds lines that a message has in two places: agents record a result as the model gets it and as they have it.
type copies struct {
	message uuid.UUID
	pointer string
	lines   []string // of the places before
	here    []string // of this place
}

// have reports whether another place of the message has the line of a match.
func (c *copies) have(m *search.Match) bool {
	if m.ID != c.message {
		*c = copies{message: m.ID, pointer: m.Pointer}
	}
	if m.Pointer != c.pointer {
		c.lines, c.here, c.pointer = append(c.lines, c.here...), nil, m.Pointer
	}
	line := strings.TrimSpace(tag.ReplaceAllString(m.Line, ""))
	c.here = append(c.here, line)
	return slices.Contains(c.lines, line)
}

func (a *app) printMatch(m *search.Match, last uuid.UUID, short shortIDs) error {
	if a.json {
		return a.record(record.OfMatch(m))
	}
	paint := a.out.Colours()
	if m.Context != last {
		if last != uuid.Nil {
			if err := a.printf("\n"); err != nil {
				return err
			}
		}
		if err := a.printf("%s\n", a.contextHead(paint, short, m.Context, m.Title, m.Labels)); err != nil {
			return err
		}
	}
	snippet, marks := m.Snippet()
	place := fmt.Sprintf("%6s", fmt.Sprint("#", m.Position))
	for _, line := range term.BreakMarked(snippet, marks, a.snippetWidth(len(place)+2)) {
		if err := a.printf("%s  %s\n", paint.Paint(term.Dim, place), line.Paint(paint)); err != nil {
			return err
		}
		place = strings.Repeat(" ", len(place))
	}
	return nil
}
