package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/disk"
	"github.com/ctxdir/ctxdir/search"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) statsCmd() *cobra.Command {
	r := &statsRun{a: a, months: map[string]int64{}}
	cmd := &cobra.Command{
		Use:   "stats [CONTEXT…]",
		Short: "Show what the store holds, by project",
		Long: `Show what the store holds: contexts, messages, tokens that models used, their cost, and the models,
for each project, or with --contexts for each conversation. Tokens and cost are counted as in
"ctxtool usage". Figures about the store follow.

  folder size      the size of the files of the store
  query time       the median time of a search in the index
  token reduction  the share of all tokens that is saved if "ctxtool context"
                   cuts each conversation to the setting max_tokens; tokens are
                   estimated from sizes`,
		Example:           "  ctxtool stats\n  ctxtool stats --contexts --project .",
		Annotations:       exits("failed to read some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			if _, err := r.which.labels.parse(cmd); err != nil {
				return err
			}
			if err := r.prices.load(); err != nil {
				return err
			}
			return a.onStore(r.run)(cmd, args)
		},
	}
	r.which.flags(cmd, "count")
	r.prices.flag(cmd)
	cmd.Flags().BoolVar(&r.contexts, "contexts", false, "show each conversation")
	cmd.Flags().IntVar(&r.limit, "limit", 20, "show at most `N` rows; 0 for all (not with --json)")
	return cmd
}

func (r *statsRun) run(ctx context.Context, s *ctxdir.Store, args []string) error {
	all, err := r.which.list(ctx, s, args)
	if err != nil {
		return err
	}
	settings, err := s.Settings()
	if err != nil {
		return err
	}
	r.budget = cmp.Or(settings.MaxTokens, ctxdir.DefaultMaxTokens)
	ids := make([]uuid.UUID, len(all))
	at := map[uuid.UUID]*conversations{}
	for i := range all {
		ids[i] = all[i].ID
		at[ids[i]] = r.add(&all[i])
	}
	failed := 0
	err = r.a.countTokens(ctx, s, func(counter *tokens.Counter) error {
		failed, err = eachContext(ctx, r.a, "Reading", ids, func(id uuid.UUID) (struct{}, error) {
			return struct{}{}, withOpen(ctx, s, id, func(c *ctxdir.Context) error { return r.count(ctx, counter, c, at[id]) })
		}, func(uuid.UUID, struct{}) error { return nil })
		return err
	})
	if err == nil {
		err = r.measure(ctx, s, all)
	}
	if err == nil {
		err = r.print(s)
	}
	if err == nil {
		err = failures("read", failed, len(ids))
	}
	return err
}

// add adds a context to its row, which it returns.
func (r *statsRun) add(sum *ctxdir.Summary) *conversations {
	project := sum.Labels["project"]
	i := slices.IndexFunc(r.rows, func(c *conversations) bool { return !r.contexts && c.Project == project })
	if i < 0 {
		i = len(r.rows)
		row := &conversations{Record: "project", Project: project, byModel: map[string]int64{}}
		if r.contexts {
			row.Record, row.Context, row.Title, row.Labels = "conversation", sum.ID.String(), sum.Title, sum.Labels
		}
		r.rows = append(r.rows, row)
	}
	for _, c := range []*conversations{r.rows[i], &r.all} {
		c.Contexts++
		c.Messages, c.Bytes = c.Messages+sum.Messages, c.Bytes+sum.Bytes
		if sum.UpdatedAt.After(c.UpdatedAt) {
			c.UpdatedAt = sum.UpdatedAt
		}
	}
	whole := tokens.EstimateSize(sum.Bytes)
	r.whole, r.reduced = r.whole+whole, r.reduced+min(whole, r.budget)
	return r.rows[i]
}

func (r *statsRun) count(ctx context.Context, counter *tokens.Counter, c *ctxdir.Context, row *conversations) error {
	for step, err := range counter.Steps(ctx, c) {
		if err != nil {
			return err
		}
		r.prices.Charge(&step)
		row.sum.Add(&step)
		r.all.sum.Add(&step)
		if step.Model != "" {
			row.byModel[step.Model] += step.Total
		}
		r.months[step.At.Local().Format("2006-01")] += step.Total
	}
	return nil
}

// finish computes what the record of a row has from its sums.
func (c *conversations) finish() {
	c.Tokens, c.Unpriced, c.Estimated = c.sum.Total, c.sum.Unpriced, c.sum.Estimated
	c.Computed, c.UnpricedTokens = c.sum.Computed, c.sum.UnpricedTokens
	if c.sum.Unpriced < c.sum.Steps {
		c.Cost = &c.sum.Cost
	}
	c.Models = make([]string, 0, len(c.byModel))
	for model := range c.byModel {
		c.Models = append(c.Models, model)
	}
	slices.SortFunc(c.Models, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.byModel[b], c.byModel[a]), strings.Compare(a, b))
	})
}

// measure finds the figures about the store.
func (r *statsRun) measure(ctx context.Context, s *ctxdir.Store, all []ctxdir.Summary) error {
	whole, err := disk.Whole(ctx, s, nil)
	if err != nil {
		return err
	}
	r.disk = whole.Total()
	r.all.byModel = map[string]int64{}
	for _, row := range r.rows {
		row.finish()
		for model, n := range row.byModel {
			r.all.byModel[model] += n
		}
	}
	r.all.finish()
	slices.SortStableFunc(r.rows, func(a, b *conversations) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Messages, a.Messages), strings.Compare(a.Project, b.Project))
	})
	if _, err := os.Stat(filepath.Join(s.Info().Path, "derived", "search.db")); err != nil {
		return nil //nolint:nilerr // without an index there is no time
	}
	return r.timeQueries(ctx, s, all)
}

// maxQueries is the number of searches that are timed.
const maxQueries = 9

// timeQueries searches for words of titles, and notes the median of the times.
func (r *statsRun) timeQueries(ctx context.Context, s *ctxdir.Store, all []ctxdir.Summary) error {
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	var times []time.Duration
	for _, sum := range all {
		words := strings.FieldsFunc(sum.Title, func(c rune) bool { return c < 'A' || c > 'z' || c > 'Z' && c < 'a' })
		if len(words) == 0 || len(times) == maxQueries {
			continue
		}
		word := slices.MaxFunc(words, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		begin := time.Now()
		for _, err := range x.Search(ctx, search.Query{Text: word, Limit: 10}) {
			if err != nil {
				return closeAfter(x.Close, err)
			}
		}
		times = append(times, time.Since(begin))
	}
	if len(times) > 0 {
		slices.Sort(times)
		r.query, r.queries = times[len(times)/2], len(times)
	}
	return x.Close()
}
