package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/disk"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// conversations are the contexts of a project, or one context.
type conversations struct {
	Record         string            `json:"record"` // "project" or "conversation"
	Context        string            `json:"context,omitempty"`
	Title          string            `json:"title,omitempty"`
	Project        string            `json:"project"`
	Labels         map[string]string `json:"labels,omitempty"`
	Contexts       int               `json:"contexts"`
	Messages       int64             `json:"messages"`
	Bytes          int64             `json:"bytes"`
	Tokens         int64             `json:"tokens"` // that models used
	Cost           *float64          `json:"cost,omitempty"`
	Unpriced       int64             `json:"unpriced"`        // steps without a cost
	Estimated      int64             `json:"estimated"`       // steps whose tokens are estimates
	Computed       int64             `json:"computed"`        // steps whose cost is computed from prices, not recorded
	UnpricedTokens int64             `json:"unpriced_tokens"` // of the steps without a cost
	Models         []string          `json:"models"`          // the most used first
	UpdatedAt      time.Time         `json:"updated_at"`

	sum     tokens.Sum
	byModel map[string]int64 // tokens
}

// metricRecord is a figure about the store. A value that is not known is null.
type metricRecord struct {
	Record string `json:"record"`
	Name   string `json:"name"`
	Value  any    `json:"value"`
}

// statsRun is one run of the verb.
type statsRun struct {
	a        *app
	which    selection
	prices   priceLists
	contexts bool
	limit    int

	rows    []*conversations
	all     conversations
	months  map[string]int64 // tokens
	whole   int64            // about the tokens of all conversations
	reduced int64            // of contexts that are assembled from them
	budget  int64
	disk    disk.Use
	query   time.Duration // of a search, 0 if there is no index
	queries int
}

func (r *statsRun) print(s *ctxdir.Store) error {
	if r.a.json {
		return r.printRecords()
	}
	r.a.page()
	all, paint := &r.all, r.a.out.Colours()
	head := []string{plain.Count(all.Contexts, "context"), plain.Count(all.Messages, "message"), tokensText(all) + " tokens"}
	if all.Cost != nil {
		head = append(head, costText(&all.sum))
	}
	head = append(head, plain.Count(len(all.Models), "model"))
	path := paint.Paint(term.Dim, plain.OneLine(s.Info().Path))
	if err := r.a.printf("%s\n%s\n", path, paint.Paint(term.Bold, strings.Join(head, " · "))); err != nil {
		return err
	}
	if bars, from, to := plain.Months(r.months); bars != "" {
		if err := r.a.printf("\ntokens by month  %s %s %s\n", from, paint.Paint(term.BoldBlue, bars), to); err != nil {
			return err
		}
	}
	if len(r.rows) > 0 {
		if err := r.a.printf("\n"); err != nil {
			return err
		}
		if err := r.a.printTable(r.table(s)); err != nil {
			return err
		}
	}
	if err := r.a.printf("\n"); err != nil {
		return err
	}
	if err := r.a.printTable(r.metrics()); err != nil {
		return err
	}
	r.prices.notes(r.a, &r.all.sum)
	return nil
}

func (r *statsRun) table(s *ctxdir.Store) *term.Table {
	short := shortIDsIn(s)
	t := &term.Table{
		Head: []string{"PROJECT", "CONTEXTS", "MESSAGES", "TOKENS", "COST", "MODELS", "UPDATED"}, Right: []int{1, 2, 3, 4}, Shrink: []int{5, 0},
		Keep: map[int]int{0: term.TitleWidth, 5: term.TitleWidth}, Names: []int{0}, Drop: []int{5, 2, 1},
	}
	if r.contexts {
		t.Head[0], t.Head[1] = "TITLE", "CONTEXT"
		t.Right, t.Names, t.Drop = t.Right[1:], nil, []int{5, 2}
	}
	rows := r.rows
	if r.limit > 0 && len(rows) > r.limit {
		rows = rows[:r.limit]
	}
	for _, c := range rows {
		name, second := cmp.Or(lastFolders(c.Project), "(none)"), plain.Number(int64(c.Contexts))
		if r.contexts {
			name, second = cmp.Or(c.Title, "(no title)"), short.of(uuid.MustParse(c.Context))
		}
		t.Add(nil, name, second, plain.Number(c.Messages), tokensText(c), costText(&c.sum), strings.Join(c.Models, ", "), plain.Ago(c.UpdatedAt))
	}
	if rest := len(r.rows) - len(rows); rest > 0 {
		t.Add(nil, fmt.Sprintf("… %d more", rest), "", "", "", "", "", "")
	}
	if all := r.all.sum; all.Unpriced == all.Steps {
		t.Remove(4)
	}
	return t
}

// tokensText is the tokens of conversations, with ~ if some are estimates.
func tokensText(c *conversations) string {
	if c.Estimated > 0 {
		return "~" + plain.Short(c.Tokens)
	}
	return plain.Short(c.Tokens)
}

// metrics are the figures about the store.
func (r *statsRun) metrics() *term.Table {
	t := &term.Table{Head: []string{"METRIC", "VALUE", ""}, Right: []int{1}, Shrink: []int{2}}
	files := fmt.Sprintf("%s, %s on the disk", plain.Count(r.disk.Files, "file"), plain.Size(r.disk.Disk))
	t.Add(nil, "folder size", plain.Size(r.disk.Bytes), files)
	if r.queries > 0 {
		t.Add(nil, "query time", fmt.Sprintf("%.1f ms", milliseconds(r.query)), "median of "+queriesText(r.queries))
	} else {
		t.Add(nil, "query time", "n/a", "no search index, or no title with a word")
	}
	if r.whole > 0 {
		t.Add(nil, "token reduction", fmt.Sprintf("%.1f %%", r.reduction()*100),
			fmt.Sprintf("contexts of at most %s tokens instead of ~%s", plain.Number(r.budget), plain.Short(r.whole)))
	} else {
		t.Add(nil, "token reduction", "n/a", "no conversation has a message")
	}
	return t
}

func queriesText(n int) string {
	if n == 1 {
		return "1 search"
	}
	return fmt.Sprintf("%d searches", n)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// reduction is the share of tokens that assembled contexts leave out.
func (r *statsRun) reduction() float64 { return 1 - float64(r.reduced)/float64(r.whole) }

func (r *statsRun) printRecords() error {
	for _, c := range r.rows {
		if err := r.a.record(c); err != nil {
			return err
		}
	}
	all := &r.all
	metrics := []metricRecord{
		{Name: "contexts", Value: all.Contexts}, {Name: "messages", Value: all.Messages}, {Name: "models", Value: len(all.Models)},
		{Name: "tokens", Value: all.Tokens}, {Name: "steps", Value: all.sum.Steps}, {Name: "cost", Value: nil},
		{Name: "computed", Value: all.sum.Computed}, {Name: "unpriced", Value: all.sum.Unpriced},
		{Name: "unpriced_tokens", Value: all.sum.UnpricedTokens}, {Name: "prices", Value: r.prices.month},
		{Name: "folder_bytes", Value: r.disk.Bytes}, {Name: "disk_bytes", Value: r.disk.Disk}, {Name: "query_ms", Value: nil},
		{Name: "token_reduction", Value: nil},
	}
	set := func(name string, value any) {
		metrics[slices.IndexFunc(metrics, func(m metricRecord) bool { return m.Name == name })].Value = value
	}
	if all.Cost != nil {
		set("cost", *all.Cost)
	}
	if r.queries > 0 {
		set("query_ms", milliseconds(r.query))
	}
	if r.whole > 0 {
		set("token_reduction", math.Round(r.reduction()*1e4)/1e4)
	}
	for _, m := range metrics {
		m.Record = "metric"
		if err := r.a.record(m); err != nil {
			return err
		}
	}
	return nil
}
