package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

func (r *statsRun) print(s *ctxdir.Store) error {
	if r.a.json {
		return r.printRecords()
	}
	r.a.page()
	all, paint := &r.all, r.a.colours(r.a.out.w)
	head := []string{count(all.Contexts, "context"), count(all.Messages, "message"), tokensText(all) + " tokens"}
	if all.Cost != nil {
		head = append(head, costText(&all.sum))
	}
	head = append(head, count(len(all.Models), "model"))
	if err := r.a.printf("%s\n%s\n", paint.paint(dim, oneLine(s.Info().Path)), paint.paint(bold, strings.Join(head, " · "))); err != nil {
		return err
	}
	if bars, from, to := sparkline(r.months); bars != "" {
		if err := r.a.printf("\ntokens by month  %s %s %s\n", from, paint.paint(boldBlue, bars), to); err != nil {
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

func (r *statsRun) table(s *ctxdir.Store) *table {
	short := shortIDsIn(s)
	t := &table{
		head: []string{"PROJECT", "CONTEXTS", "MESSAGES", "TOKENS", "COST", "MODELS", "UPDATED"}, right: []int{1, 2, 3, 4}, shrink: []int{5, 0},
		keep: map[int]int{0: titleWidth, 5: titleWidth}, names: []int{0}, drop: []int{5, 2, 1},
	}
	if r.contexts {
		t.head[0], t.head[1] = "TITLE", "CONTEXT"
		t.right, t.names, t.drop = t.right[1:], nil, []int{5, 2}
	}
	rows := r.rows
	if r.limit > 0 && len(rows) > r.limit {
		rows = rows[:r.limit]
	}
	for _, c := range rows {
		name, second := cmp.Or(lastFolders(c.Project), "(none)"), humanCount(int64(c.Contexts))
		if r.contexts {
			name, second = cmp.Or(c.Title, "(no title)"), short.of(uuid.MustParse(c.Context))
		}
		t.add(nil, name, second, humanCount(c.Messages), tokensText(c), costText(&c.sum), strings.Join(c.Models, ", "), humanTime(c.UpdatedAt))
	}
	if rest := len(r.rows) - len(rows); rest > 0 {
		t.add(nil, fmt.Sprintf("… %d more", rest), "", "", "", "", "", "")
	}
	if all := r.all.sum; all.Unpriced == all.Steps {
		t.remove(4)
	}
	return t
}

// tokensText is the tokens of conversations, with ~ if some are estimates.
func tokensText(c *conversations) string {
	if c.Estimated > 0 {
		return "~" + shortCount(c.Tokens)
	}
	return shortCount(c.Tokens)
}

// metrics are the figures about the store.
func (r *statsRun) metrics() *table {
	t := &table{head: []string{"METRIC", "VALUE", ""}, right: []int{1}, shrink: []int{2}}
	t.add(nil, "folder size", humanSize(r.disk.Bytes), fmt.Sprintf("%s, %s on the disk", count(r.disk.Files, "file"), humanSize(r.disk.Disk)))
	if r.queries > 0 {
		t.add(nil, "query time", fmt.Sprintf("%.1f ms", milliseconds(r.query)), "median of "+queriesText(r.queries))
	} else {
		t.add(nil, "query time", "n/a", "no search index, or no title with a word")
	}
	if r.whole > 0 {
		t.add(nil, "token reduction", fmt.Sprintf("%.1f %%", r.reduction()*100),
			fmt.Sprintf("contexts of at most %s tokens instead of ~%s", humanCount(r.budget), shortCount(r.whole)))
	} else {
		t.add(nil, "token reduction", "n/a", "no conversation has a message")
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

// maxMonths bounds the months of a sparkline.
const maxMonths = 24

// sparkline draws a bar for each month up to the last one. It is empty if there are fewer than two months.
func sparkline(months map[string]int64) (bars, from, to string) {
	names := make([]string, 0, len(months))
	top := int64(0)
	for name := range months {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) < 2 {
		return "", "", ""
	}
	last, err := time.Parse("2006-01", names[len(names)-1])
	if err != nil {
		return "", "", ""
	}
	first := last
	for range maxMonths - 1 {
		if first.Format("2006-01") <= names[0] {
			break
		}
		first = first.AddDate(0, -1, 0)
	}
	for m := first; !m.After(last); m = m.AddDate(0, 1, 0) {
		top = max(top, months[m.Format("2006-01")])
	}
	var b strings.Builder
	levels := []rune("▁▂▃▄▅▆▇█")
	for m := first; !m.After(last); m = m.AddDate(0, 1, 0) {
		bar := '·'
		if n := months[m.Format("2006-01")]; n > 0 {
			bar = levels[int(float64(n)/float64(top)*float64(len(levels)-1))]
		}
		b.WriteRune(bar)
	}
	return b.String(), first.Format("2006-01"), last.Format("2006-01")
}
