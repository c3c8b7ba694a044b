package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// usageRun is one run of the verb.
type usageRun struct {
	a            *app
	by           string
	prices       priceLists
	which        selection
	since, until string

	report  tokens.Report
	counted int // contexts
}

// usageColumns are the counts in a table. A column is left out if all its counts are 0, and in a narrow terminal in the
// order of lesser.
var usageColumns = []struct {
	head      string
	estimated bool // where the tool records nothing
	lesser    int  // 0: always shown
	count     func(s *tokens.Sum) int64
}{
	{"INPUT", true, 4, func(s *tokens.Sum) int64 { return s.Input }},
	{"CACHED", false, 3, func(s *tokens.Sum) int64 { return s.CacheRead }},
	{"TO CACHE", false, 2, func(s *tokens.Sum) int64 { return s.CacheWrite }},
	{"OUTPUT", true, 5, func(s *tokens.Sum) int64 { return s.Output }},
	{"REASONING", false, 1, func(s *tokens.Sum) int64 { return s.Reasoning }},
	{"TOTAL", true, 0, func(s *tokens.Sum) int64 { return s.Total }},
}

// table shows the rows, and their sum.
func (r *usageRun) table(s *ctxdir.Store) *term.Table {
	t := &term.Table{}
	names := r.names(s, t)
	all := &r.report.Sum
	cells := func(sum *tokens.Sum) (cells []string) {
		if r.by != "step" {
			cells = append(cells, plain.Number(sum.Calls))
		}
		for _, c := range usageColumns {
			if c.count(all) > 0 {
				text := plain.Short(c.count(sum))
				if sum.Estimated > 0 && c.estimated && c.count(sum) > 0 {
					text = "~" + text
				}
				cells = append(cells, text)
			}
		}
		if all.Unpriced < all.Steps {
			cells = append(cells, costText(sum))
		}
		return cells
	}
	first := len(t.Head)
	for _, i := range t.Shrink {
		t.Keep = map[int]int{i: max(term.TitleWidth, len("claude-sonnet-4-5-20250929"))}
	}
	if r.by != "step" {
		t.Head = append(t.Head, "STEPS")
	}
	lesser := map[int]int{} // columns to leave out in a narrow terminal, by their place in the order
	for _, c := range usageColumns {
		if c.count(all) > 0 {
			if c.lesser > 0 {
				lesser[c.lesser] = len(t.Head)
			}
			t.Head = append(t.Head, c.head)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(lesser)) {
		t.Drop = append(t.Drop, lesser[place])
	}
	if all.Unpriced < all.Steps {
		t.Head = append(t.Head, "COST")
	}
	for i := first; i < len(t.Head); i++ {
		t.Right = append(t.Right, i)
	}
	for _, row := range r.report.Rows() {
		t.Add(nil, append(names(row), cells(&row.Sum)...)...)
	}
	total := slices.Repeat([]string{""}, first)
	total[0] = "total"
	t.Add(nil, append(total, cells(all)...)...)
	for i := range t.Head {
		t.Style(i, term.Bold)
	}
	return t
}

// names adds the columns that say what a row is about, and returns a function for their cells.
func (r *usageRun) names(s *ctxdir.Store, t *term.Table) func(row *tokens.Row) []string {
	short := shortIDsIn(s)
	switch r.by {
	case "context":
		t.Head, t.Shrink = []string{"CONTEXT", "TITLE"}, []int{1}
		return func(row *tokens.Row) []string { return []string{short.of(uuid.MustParse(row.Key)), row.Text} }
	case "prompt":
		t.Head, t.Shrink = []string{"CONTEXT", "PROMPT"}, []int{1}
		return func(row *tokens.Row) []string {
			return []string{short.of(row.Context), cmp.Or(row.Text, "(none)")}
		}
	case "message":
		t.Head, t.Shrink, t.Names = []string{"CONTEXT", "BRANCH", "MESSAGE"}, []int{1}, []int{1}
		return func(row *tokens.Row) []string {
			return []string{short.of(row.Context), row.Branch, fmt.Sprint("#", row.Position)}
		}
	case "step":
		t.Head, t.Shrink, t.Names = []string{"CONTEXT", "MESSAGE", "MODEL"}, []int{2}, []int{2}
		return func(row *tokens.Row) []string {
			return []string{short.of(row.Context), fmt.Sprint("#", row.Position), row.Model}
		}
	case "project":
		t.Head, t.Shrink, t.Names = []string{"PROJECT"}, []int{0}, []int{0}
		return func(row *tokens.Row) []string { return []string{cmp.Or(lastFolders(row.Key), "(none)")} }
	}
	t.Head, t.Shrink, t.Names = []string{map[string]string{"model": "MODEL", "day": "DAY"}[r.by]}, []int{0}, []int{0}
	return func(row *tokens.Row) []string { return []string{cmp.Or(row.Key, "(unknown)")} }
}

// costText is a cost, with a + if it is not that of all steps, and a ~ if it is that of estimates too.
func costText(s *tokens.Sum) string {
	if s.Steps == 0 {
		return ""
	}
	if s.Unpriced == s.Steps {
		return "unpriced"
	}
	text := "$" + plain.Dollars(s.Cost)
	if s.Rough {
		text = "~" + text
	}
	if s.Unpriced > 0 {
		text += "+"
	}
	return text
}
