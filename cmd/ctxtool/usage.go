package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// usageRecord is the usage of the steps with one key.
type usageRecord struct {
	Record   string     `json:"record"`
	By       string     `json:"by"`
	Key      string     `json:"key"`               // "" for steps that have none
	Context  string     `json:"context,omitempty"` // of a step, a prompt, a message
	Branch   string     `json:"branch,omitempty"`
	Position *int64     `json:"position,omitempty"`
	ID       string     `json:"id,omitempty"` // of the message
	Prompt   string     `json:"prompt,omitempty"`
	Text     string     `json:"text,omitempty"` // the beginning of the prompt, or the title of the context
	Model    string     `json:"model,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	usageCounts
}

// usageSummary is the usage of all steps.
type usageSummary struct {
	Record   string `json:"record"`
	Contexts int    `json:"contexts"`
	usageCounts
	Prices         string   `json:"prices"`          // the month of the published prices
	UnpricedModels []string `json:"unpriced_models"` // "" for unknown ones
}

type usageCounts struct {
	Steps      int64    `json:"steps"`
	Calls      int64    `json:"calls"` // a step may be the record of several
	Input      int64    `json:"input"`
	CacheRead  int64    `json:"cache_read"`
	CacheWrite int64    `json:"cache_write"`
	Output     int64    `json:"output"`
	Reasoning  int64    `json:"reasoning"`
	Total      int64    `json:"total"`
	Cost       *float64 `json:"cost,omitempty"`
	Unpriced   int64    `json:"unpriced"`  // steps without a cost
	Estimated  int64    `json:"estimated"` // steps whose tokens are estimates
	costCounts
}

// costCounts say what a cost is of.
type costCounts struct {
	Computed       int64 `json:"computed"`        // steps whose cost is computed from prices, not recorded
	UnpricedTokens int64 `json:"unpriced_tokens"` // of the steps without a cost
}

func countsOf(s *tokens.Sum) usageCounts {
	u := usageCounts{
		s.Steps, s.Calls, s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Reasoning, s.Total, &s.Cost, s.Unpriced, s.Estimated,
		costCounts{s.Computed, s.UnpricedTokens},
	}
	if s.Unpriced == s.Steps {
		u.Cost = nil
	}
	return u
}

var usageKeys = []string{"model", "project", "context", "day", "prompt", "message", "step"}

// usageRun is one run of the verb.
type usageRun struct {
	a            *app
	by           string
	prices       priceLists
	which        selection
	since, until string

	json     bool
	from, to time.Time
	projects map[uuid.UUID]string
	titles   map[uuid.UUID]string
	rows     []*usageRow
	at       map[string]*usageRow
	sum      tokens.Sum
	counted  int // contexts
	prompt   uuid.UUID
	text     string // of the prompt
}

type usageRow struct {
	usageRecord
	sum tokens.Sum
}

func (a *app) usageCmd() *cobra.Command {
	r := &usageRun{a: a, at: map[string]*usageRow{}, projects: map[uuid.UUID]string{}, titles: map[uuid.UUID]string{}}
	cmd := &cobra.Command{
		Use:   "usage [CONTEXT…]",
		Short: "Show the tokens and the cost that agents used",
		Long: `Show how many tokens agents used, and what they cost, as their tools recorded it: in the contexts
that arguments name, or in every context of the store. A step is one call of a model. It counts
once, even if several lines, branches or contexts repeat its record.

Each tool counts in its own way: INPUT of Codex and Gemini CLI includes CACHED, what the provider had
in its cache, and INPUT of Claude Code and opencode does not. TO CACHE is what it stored there.
TOTAL counts each token once. A number with ~ is an estimate from texts, for conversations without
records; --json says how many steps are.

A narrow terminal leaves out REASONING, TO CACHE, CACHED, INPUT and OUTPUT, in this order.

COST is in US dollars, as recorded. The cost of other steps is computed from list prices that come
with ctxtool; a note names their month, and the models without a price. --prices FILE has prices
that count before them, in the form of model_prices_and_context_window.json of LiteLLM. + marks a
cost without that of unpriced steps, ~ one with that of estimates.`,
		Example:           "  ctxtool usage\n  ctxtool usage --by day --since 720h\n  ctxtool usage 7c2f --by prompt",
		Annotations:       exits("failed to read some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.parse(cmd); err != nil {
				return err
			}
			return a.onStore(r.run, ctxdir.WithReadOnly())(cmd, args)
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
	r.json = r.a.json
	if !slices.Contains(usageKeys, r.by) {
		return usage(cmd, "--by: unknown key %q; use one of: %s", r.by, strings.Join(usageKeys, ", "))
	}
	if r.from, err = parseTime(cmd, "--since", r.since); err != nil {
		return err
	}
	if r.to, err = parseTime(cmd, "--until", r.until); err != nil {
		return err
	}
	if _, err = r.which.labels.parse(cmd); err != nil {
		return err
	}
	return r.prices.load()
}

func (r *usageRun) run(ctx context.Context, s *ctxdir.Store, args []string) error {
	ids, err := r.contexts(ctx, s, args)
	if err != nil {
		return err
	}
	failed := 0
	err = r.a.countTokens(ctx, s, func(counter *tokens.Counter) error {
		failed, err = eachContext(ctx, r.a, "Reading", ids, func(id uuid.UUID) (struct{}, error) {
			return struct{}{}, withOpen(ctx, s, id, func(c *ctxdir.Context) error { return r.count(ctx, counter, c) })
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

// contexts returns the contexts to count, the oldest first: a fork repeats the records of an older one.
func (r *usageRun) contexts(ctx context.Context, s *ctxdir.Store, args []string) (ids []uuid.UUID, err error) {
	all, err := r.which.list(ctx, s, args)
	for _, sum := range all {
		ids = append(ids, sum.ID)
		r.projects[sum.ID], r.titles[sum.ID] = sum.Labels["project"], sum.Title
	}
	return ids, err
}

func (r *usageRun) count(ctx context.Context, counter *tokens.Counter, c *ctxdir.Context) error {
	for step, err := range counter.Steps(ctx, c) {
		if err != nil {
			return err
		}
		if !r.from.IsZero() && step.At.Before(r.from) || !r.to.IsZero() && !step.At.Before(r.to) {
			continue
		}
		r.prices.charge(&step)
		r.sum.Add(&step)
		row, err := r.row(ctx, c, &step)
		if err != nil {
			return err
		}
		row.sum.Add(&step)
		if r.by == "step" && r.json { // there may be many: none is kept
			if err := r.a.record(row.record()); err != nil {
				return err
			}
			r.rows = r.rows[:0]
		}
	}
	return nil
}

// row is the row of a step.
func (r *usageRun) row(ctx context.Context, c *ctxdir.Context, step *tokens.Step) (row *usageRow, err error) {
	u := usageRecord{Record: "usage", By: r.by}
	at := step.At.Local()
	id := step.Context.String()
	switch r.by {
	case "model":
		u.Key = step.Model
	case "project":
		u.Key = r.projects[step.Context]
	case "context":
		u.Key, u.Text = id, r.titles[step.Context]
	case "day":
		u.Key = at.Format(time.DateOnly)
	default:
		u.Context, u.Branch, u.At = id, step.Branch, &at
		u.Prompt = record.ID(step.Prompt)
		if u.Key = u.Prompt; r.by != "prompt" {
			u.ID, u.Position = record.ID(step.Message), &step.Position
			u.Key = u.ID
		}
		if r.by == "step" {
			u.Model = step.Model
		}
	}
	place := u.Context + "/" + u.Key
	if row = r.at[place]; row != nil && r.by != "step" {
		return row, nil
	}
	if u.Prompt != "" {
		if u.Text, err = r.promptText(ctx, c, step); err != nil {
			return nil, err
		}
	}
	row = &usageRow{usageRecord: u}
	r.rows = append(r.rows, row)
	if r.by != "step" {
		r.at[place] = row
	}
	return row, nil
}

// promptText returns the beginning of the prompt of a step. Most steps have that of the step before.
func (r *usageRun) promptText(ctx context.Context, c *ctxdir.Context, step *tokens.Step) (string, error) {
	if r.prompt != step.Prompt {
		text, err := tokens.PromptText(ctx, c, step)
		if err != nil {
			return "", err
		}
		r.prompt, r.text = step.Prompt, text
	}
	return r.text, nil
}

// record is the row as a record, with its sums.
func (row *usageRow) record() usageRecord {
	u := row.usageRecord
	u.usageCounts = countsOf(&row.sum)
	return u
}

func (r *usageRun) print(s *ctxdir.Store) error {
	switch r.by {
	case "model", "project", "context":
		slices.SortStableFunc(r.rows, func(a, b *usageRow) int { return cmp.Compare(b.sum.Total, a.sum.Total) })
	case "day":
		slices.SortFunc(r.rows, func(a, b *usageRow) int { return strings.Compare(a.Key, b.Key) })
	}
	if r.json {
		for _, row := range r.rows {
			if err := r.a.record(row.record()); err != nil {
				return err
			}
		}
		return r.a.record(usageSummary{"summary", r.counted, countsOf(&r.sum), r.prices.month, r.prices.models()})
	}
	if r.sum.Steps == 0 {
		r.a.note("no model was called in %s", count(r.counted, "context"))
		return nil
	}
	r.a.page()
	if err := r.a.printTable(r.table(s)); err != nil {
		return err
	}
	r.prices.notes(r.a, &r.sum)
	return nil
}
