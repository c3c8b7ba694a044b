package main

import (
	"context"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/search"
	"github.com/spf13/cobra"
)

type searchSummary struct {
	Record string `json:"record"`
	Hits   int    `json:"hits"`
	Behind int64  `json:"behind"`
}

func (a *app) searchCmd() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search QUERY [CONTEXT…]",
		Short: "Find messages by their words",
		Long: `Find messages in the whole store or in the given contexts, best first: on all branches, in archives and in
payloads. Hits are grouped by context, and --open shows one in its conversation.

  flaky test          any of the words, in any form: "tests" finds "testing"
  "flaky test"        these words side by side, as they are written
  flaky OR fragile    one of the words
  -windows            without this word; also -"two words"
  pars*               words that begin so

Without operators, a message needs any of the words. Messages with more and rarer of these words
rank higher; what people and the model say ranks higher than what tools print. Very common English
words do not count. With operators, a message must meet every condition.

A part of an identifier finds the identifier: "token" finds parseTokenStream. A path alone, such as
internal/engine/store.go, is a phrase. In Chinese, Japanese, Korean and Thai, two characters suffice.

The search first brings the index up to date, for at most --max-wait. T is a time in RFC 3339, a
date, or a duration before now, such as 48h. Contexts with a kind are searched with --kind, or by
name; --kind moments finds the moments of conversations. Bookkeeping of agent tools, such as
progress and repeated records, is left out without --all.`,
		Example: `  ctxtool search "how did we fix the flaky lock test in the end"
  ctxtool search '"lock test" -windows' --since 720h --role assistant
  ctxtool search timeout --path '*.go' --open 1`,
		Annotations:       exits("a context cannot be read", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := f.parse(cmd, args)
			if err != nil {
				return err
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, refs []string) error { return a.search(ctx, s, &f, refs) })(cmd, args)
		},
	}
	flags, q := cmd.Flags(), &f.query
	flags.StringVar(&q.Path, "path", "", "only messages that attach, read or write a file like `GLOB`; QUERY may be missing then")
	flags.BoolVar(&q.Phrase, "phrase", false, "take QUERY as one phrase")
	flags.IntVar(&f.open, "open", 0, "show hit number `N` in its conversation")
	flags.BoolVar(&q.Bookkeeping, "all", false, "search bookkeeping, too")
	f.add(a, cmd, "print", "messages")
	return cmd
}

// parse checks the flags, and returns the arguments without the query.
func (f *searchFlags) parse(cmd *cobra.Command, args []string) ([]string, error) {
	q := &f.query
	if len(args) > 0 {
		q.Text, args = args[0], args[1:]
	} else if q.Path == "" {
		return nil, usage(cmd, "missing argument")
	}
	if cmd.Flags().Changed("open") && f.open <= 0 {
		return nil, usage(cmd, "--open: hits are numbered from 1")
	}
	err := f.parseConditions(cmd)
	q.Limit = max(q.Limit, f.open)
	return args, err
}

func (a *app) search(ctx context.Context, s *ctxdir.Store, f *searchFlags, refs []string) error {
	if err := f.within(s, refs); err != nil {
		return err
	}
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	return closeAfter(x.Close, a.searchIn(ctx, s, x, f))
}

func (a *app) searchIn(ctx context.Context, s *ctxdir.Store, x *search.Index, f *searchFlags) error {
	updated, err := a.updateIndex(ctx, x, search.UpdateOptions{MaxWait: f.maxWait})
	if err != nil {
		return err
	}
	var hits []search.Hit
	for hit, err := range x.Search(ctx, f.query) {
		if err != nil {
			return err
		}
		hits = append(hits, hit)
	}
	switch {
	case f.open > len(hits):
		err = badArgument("", "--open: hit %d not found", f.open)
	case f.open > 0:
		err = a.openHit(ctx, s, f.open, &hits[f.open-1])
	case a.json:
		err = a.hitRecords(hits, f.query.Limit, updated.Behind)
	default:
		a.page()
		err = a.printHits(s, hits)
		if n := len(hits); n > 0 && n == f.query.Limit {
			a.detail("printed %s; continue with --cursor %s", plain.Count(n, "message"), hits[n-1].Cursor)
		}
	}
	if err != nil {
		return err
	}
	a.noteWords(hits)
	return a.notSearched(updated)
}

// noteWords says that nothing was found, or nothing with all words of the query.
func (a *app) noteWords(hits []search.Hit) {
	switch {
	case a.json:
	case len(hits) == 0:
		a.note("no match")
	case !slices.ContainsFunc(hits, func(h search.Hit) bool { return !h.Partial }):
		a.note("no message has all of these words; the hits have some of them")
	}
}

func (a *app) hitRecords(hits []search.Hit, limit int, behind int64) error {
	for i := range hits {
		r := record.OfHit(&hits[i])
		r.Record = "hit"
		if err := a.record(r); err != nil {
			return err
		}
	}
	if len(hits) == limit {
		if err := a.record(cursorRecord{"cursor", hits[limit-1].Cursor}); err != nil {
			return err
		}
	}
	return a.record(searchSummary{"summary", len(hits), behind})
}

// openHit shows a hit in full, between the messages around it.
func (a *app) openHit(ctx context.Context, s *ctxdir.Store, number int, h *search.Hit) error {
	if len(h.Branches) == 0 {
		return badArgument("", "--open: no branch shows message %s any longer", h.ID)
	}
	return withOpen(ctx, s, h.Context, func(c *ctxdir.Context) error {
		name := h.Branches[0]
		if active := c.Active().Name(); slices.Contains(h.Branches, active) {
			name = active
		}
		b, err := c.Branch(name)
		if err != nil {
			return err
		}
		n, err := b.Len(ctx)
		if err != nil {
			return err
		}
		if !a.json {
			a.page()
			paint := a.out.Colours()
			err = a.printf("%s\n", a.contextHead(paint, shortIDsIn(s), h.Context, h.Title, h.Labels))
			if err == nil {
				err = a.printHit(paint, number, h)
			}
		}
		const around = 3
		from, to := max(h.Position-around, 0), min(h.Position+1+around, n)
		for _, span := range [][2]int64{{from, h.Position}, {h.Position, h.Position + 1}, {h.Position + 1, to}} {
			if err != nil || span[0] >= span[1] {
				continue
			}
			if !a.json {
				err = a.printf("\n")
			}
			isHit := span[0] == h.Position // it may be in a tool result, or in bookkeeping
			if err == nil {
				err = a.show(ctx, c, &showFlags{branch: name, full: isHit, all: isHit}, span[0], span[1])
			}
		}
		return err
	})
}
