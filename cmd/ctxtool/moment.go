package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) momentCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "moment",
		Short: "Find and list decisions and solutions in conversations",
		Long: `Find, list and add moments: decisions, patterns, solutions and facts that conversations state.

A moment is stored as a separate message, on a branch of its context that lists leave out. "search
--kind moments" finds moments by their words. Erasing a message erases its moments.`,
		Example:     "  ctxtool moment extract 7c2f\n  ctxtool moment ls --type decision\n  ctxtool search --kind moments timeout",
		Annotations: exits("some contexts cannot be read", ofStores...),
		Args:        cobra.ArbitraryArgs,
		RunE:        needVerb,
	}
	cmd.AddCommand(a.momentExtractCmd(), a.momentAddCmd(), a.momentLsCmd(), a.momentRmCmd())
	return cmd
}

func (a *app) momentLsCmd() *cobra.Command {
	var f momentFlags
	cmd := &cobra.Command{
		Use:   "ls [CONTEXT…]",
		Short: "List the moments of the store, or of the given contexts",
		Long: `List the moments of the whole store or of the given contexts, most relevant first. Each has a line with
its type, id, relevance and context, and its text below.`,
		Example:           "  ctxtool moment ls\n  ctxtool moment ls 7c2f --type decision --type solution --newest",
		Annotations:       exits("some contexts cannot be read", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			types, err := f.parse(cmd)
			if err != nil {
				return err
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, refs []string) error {
				return a.listMoments(ctx, s, &f, types, refs)
			}, ctxdir.Options{ReadOnly: true})(cmd, args)
		},
	}
	f.add(cmd, "list")
	cmd.Flags().StringSliceVar(&f.tags, "tag", nil, "list moments with the tag `TAG`; can be repeated")
	cmd.Flags().IntVar(&f.maxTokens, "max-tokens", 0, "list as many as fit in about `N` tokens, the most relevant ones")
	cmd.Flags().BoolVar(&f.newest, "newest", false, "list the newest first")
	return cmd
}

func (a *app) listMoments(ctx context.Context, s *ctxdir.Store, f *momentFlags, types []moment.Type, refs []string) error {
	ids, err := resolveAll(s, refs)
	if err != nil {
		return err
	}
	var all []moment.Moment
	failed := 0
	for m, err := range moment.InStore(ctx, s, ids...) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
			a.warnOf(err)
		case (len(types) == 0 || slices.Contains(types, m.Type)) && m.Relevance >= f.relevance && hasTags(m, f.tags):
			all = append(all, m)
		}
	}
	all = moment.Rank(all)
	if f.limit > 0 {
		all = all[:min(f.limit, len(all))]
	}
	if f.maxTokens > 0 {
		all = moment.Fit(all, f.maxTokens, compress.Estimate)
	}
	if f.newest {
		slices.SortStableFunc(all, func(x, y moment.Moment) int { return y.At.Compare(x.At) })
	}
	if err := a.printMoments(s, all); err != nil {
		return err
	}
	return failures("read", failed, max(failed, len(ids)))
}

func hasTags(m moment.Moment, tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(m.Tags, tag) })
}

// printMoments prints text for people, or records.
func (a *app) printMoments(s *ctxdir.Store, all []moment.Moment) error {
	if !a.json && len(all) == 0 {
		a.note(`no moments; run "ctxtool moment extract" to find some`)
		return nil
	}
	if a.json {
		for _, m := range all {
			if err := a.record(a.momentRecord(&m)); err != nil {
				return err
			}
		}
		return nil
	}
	a.page()
	var ids []uuid.UUID
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	paint, short, contexts := a.out.Colours(), shortIDsOf(ids), shortIDsIn(s)
	for _, m := range all {
		head := paint.Paint(term.Bold, fmt.Sprintf("%-8s", m.Type)) + "  " + short.of(m.ID) + "  " +
			paint.Paint(term.Dim, fmt.Sprintf("%.2f  in %s", m.Relevance, contexts.of(m.Context)))
		if err := a.printf("%s\n%s\n", head, momentText(m.Content, a.snippetWidth(momentMargin))); err != nil {
			return err
		}
	}
	return nil
}

const (
	momentMargin = 4
	momentLines  = 4 // of a moment in a list
)

// momentText breaks the lines of a moment at a width, behind a margin.
func momentText(content string, columns int) string {
	var lines []string
	for line := range strings.Lines(content) {
		lines = append(lines, strings.Split(plain.Wrap(plain.OneLine(strings.TrimSuffix(line, "\n")), columns), "\n")...)
	}
	if len(lines) > momentLines {
		lines = lines[:momentLines]
		lines[momentLines-1] = plain.Shorten(lines[momentLines-1]+" …", columns)
	}
	margin := strings.Repeat(" ", momentMargin)
	return margin + strings.Join(lines, "\n"+margin)
}

func (a *app) momentRmCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm ID…",
		Short: "Remove moments",
		Long: `Remove moments. ID is the id of a moment, or a unique prefix of it. The text goes to the trash of
its context, and "trash restore" restores it during the grace period. "moment extract" does not
add it again. To remove a text for good, erase the message: "ctxtool erase".`,
		Example:     "  ctxtool moment rm 0815 --dry-run\n  ctxtool moment rm 0815",
		Annotations: exits("", ofStores...),
		Args:        between(1, -1),
		RunE:        a.onStore(a.removeMoments),
	}
	a.dryRunFlag(cmd)
	a.undoable(cmd)
	return cmd
}

// minMomentID is the least length of a beginning of an id, so that a number is not taken for one.
const minMomentID = 4

// removeMoments removes moments, once all arguments name one.
func (a *app) removeMoments(ctx context.Context, s *ctxdir.Store, refs []string) error {
	found, err := findMoments(ctx, s, refs)
	if err != nil {
		return err
	}
	for _, m := range found {
		if !a.dryRun {
			err := withOpen(ctx, s, m.Context, func(c *ctxdir.Context) error { return moment.Remove(ctx, c, m.ID) })
			if err != nil && !errors.Is(err, ctxdir.ErrNotExist) { // two arguments may name it
				return err
			}
		}
		if err := a.result(a.momentRecord(m), "%s  %s", m.ID, cmp.Or(m.Content, string(m.Type))); err != nil {
			return err
		}
	}
	if a.dryRun && !a.json {
		a.note("would remove %s", plain.Count(len(found), "moment"))
	}
	return nil
}

// findMoments returns the moments whose ids begin like the arguments.
func findMoments(ctx context.Context, s *ctxdir.Store, refs []string) ([]*moment.Moment, error) {
	if slices.Contains(refs, "") {
		return nil, badArgument(`run "ctxtool moment ls" to list the ids`, "MOMENT is empty")
	}
	found, matches := make([]*moment.Moment, len(refs)), make([][]uuid.UUID, len(refs))
	for m, err := range moment.InStore(ctx, s) {
		if err != nil {
			return nil, err
		}
		for i, ref := range refs {
			if strings.HasPrefix(m.ID.String(), strings.ToLower(ref)) {
				found[i], matches[i] = &m, append(matches[i], m.ID)
			}
		}
	}
	for i, ref := range refs {
		err := &ctxdir.Error{Op: findMoment, Path: s.Info().Path}
		switch n := len(matches[i]); {
		case n == 0:
			err.Err = fmt.Errorf("%w: no moment id begins with %q", ctxdir.ErrNotExist, ref)
			return nil, err
		case len(ref) < minMomentID:
			return nil, badArgument("type more of the id", "%q is shorter than %d digits", ref, minMomentID)
		case n > 1:
			err.Matches = matches[i]
			err.Err = fmt.Errorf("%w: %q matches %d moment ids", ctxdir.ErrAmbiguous, ref, n)
			return nil, err
		}
	}
	return found, nil
}
