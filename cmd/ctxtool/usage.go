package main

import (
	"context"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

var usageKeys = func() (names []string) {
	for _, key := range tokens.Keys {
		names = append(names, string(key))
	}
	return names
}()

func (a *app) usageCmd() *cobra.Command {
	r := &usageRun{a: a}
	cmd := &cobra.Command{
		Use:   "usage [CONTEXT…]",
		Short: "Show the tokens and the cost that agents used",
		Long: `Show how many tokens agents used, and what they cost, as their tools recorded it: in the contexts
that arguments name, or in every context of the store. A step is one call of a model. It counts
once, even if several records, branches or contexts repeat it.

Each tool counts in its own way: INPUT of Codex and Gemini CLI includes CACHED, what the provider had
in its cache, and INPUT of Claude Code and opencode does not. TO CACHE is what it stored there.
TOTAL counts each token once. A number with ~ is an estimate from texts, for conversations without
records; --json says how many steps are.

A narrow terminal leaves out REASONING, TO CACHE, CACHED, INPUT and OUTPUT, in this order.

COST is in US dollars, as recorded. The cost of other steps is computed from list prices that come
with ctxtool; a note names their month, and the models without a price. --prices FILE overrides
them, in the format of model_prices_and_context_window.json of LiteLLM. + marks a cost that leaves
out unpriced steps, ~ a cost that includes estimates.`,
		Example:           "  ctxtool usage\n  ctxtool usage --by day --since 720h\n  ctxtool usage 7c2f --by prompt",
		Annotations:       exits("failed to read some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.parse(cmd); err != nil {
				return err
			}
			return a.onStore(r.run, ctxdir.Options{ReadOnly: true})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.by, "by", "model", "sum up by `KEY`: "+strings.Join(usageKeys, ", "))
	flags.StringVar(&r.since, "since", "", "count steps at `T` or later")
	flags.StringVar(&r.until, "until", "", "count steps before `T`")
	r.which.flags(cmd, "count")
	r.prices.flag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(usageKeys, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (r *usageRun) parse(cmd *cobra.Command) (err error) {
	if !slices.Contains(usageKeys, r.by) {
		return usage(cmd, "--by: unknown key %q; use one of: %s", r.by, strings.Join(usageKeys, ", "))
	}
	if r.report.From, err = parseTime(cmd, "--since", r.since); err != nil {
		return err
	}
	if r.report.To, err = parseTime(cmd, "--until", r.until); err != nil {
		return err
	}
	if _, err = r.which.labels.parse(cmd); err != nil {
		return err
	}
	r.report.By, r.report.Charges = tokens.Key(r.by), &r.prices.Charges
	if r.a.json { // there may be many: none is kept
		r.report.Each = r.record
	}
	return r.prices.load()
}

func (r *usageRun) run(ctx context.Context, s *ctxdir.Store, args []string) error {
	all, err := r.which.list(ctx, s, args)
	if err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	failed := 0
	err = r.a.countTokens(ctx, s, func(counter *tokens.Counter) error {
		failed, err = eachContext(ctx, r.a, "Reading", ids, func(id uuid.UUID) (struct{}, error) {
			return struct{}{}, withOpen(ctx, s, id, func(c *ctxdir.Context) error { return r.report.Add(ctx, counter, c) })
		}, func(uuid.UUID, struct{}) error { return nil })
		return err
	})
	if err == nil {
		r.counted = len(ids) - failed
		err = r.print(s)
	}
	if err == nil {
		err = failures("read", failed, len(ids))
	}
	return err
}

// record writes a row as a record.
func (r *usageRun) record(row *tokens.Row) error {
	u := record.OfUsage(r.report.By, row)
	u.Record = "usage"
	return r.a.record(u)
}

func (r *usageRun) print(s *ctxdir.Store) error {
	if r.a.json {
		for _, row := range r.report.Rows() {
			if err := r.record(row); err != nil {
				return err
			}
		}
		all := record.OfReport(&r.report, r.counted, r.prices.month)
		all.Record = "summary"
		return r.a.record(all)
	}
	if r.report.Steps == 0 {
		r.a.note("no calls of models found in %s", plain.Count(r.counted, "context"))
		return nil
	}
	r.a.page()
	if err := r.a.printTable(r.table(s)); err != nil {
		return err
	}
	r.prices.notes(r.a, &r.report.Sum)
	return nil
}
