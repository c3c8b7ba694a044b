package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ctxdir/ctxdir"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

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
func (r *usageRun) table(s *ctxdir.Store) *table {
	t := &table{}
	names := r.names(s, t)
	all := &r.report.Sum
	cells := func(sum *tokens.Sum) (cells []string) {
		if r.by != "step" {
			cells = append(cells, humanCount(sum.Calls))
		}
		for _, c := range usageColumns {
			if c.count(all) > 0 {
				text := shortCount(c.count(sum))
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
	first := len(t.head)
	for _, i := range t.shrink {
		t.keep = map[int]int{i: max(titleWidth, len("claude-sonnet-4-5-20250929"))}
	}
	if r.by != "step" {
		t.head = append(t.head, "STEPS")
	}
	lesser := map[int]int{} // columns to leave out in a narrow terminal, by their place in the order
	for _, c := range usageColumns {
		if c.count(all) > 0 {
			if c.lesser > 0 {
				lesser[c.lesser] = len(t.head)
			}
			t.head = append(t.head, c.head)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(lesser)) {
		t.drop = append(t.drop, lesser[place])
	}
	if all.Unpriced < all.Steps {
		t.head = append(t.head, "COST")
	}
	for i := first; i < len(t.head); i++ {
		t.right = append(t.right, i)
	}
	for _, row := range r.report.Rows() {
		t.add(nil, append(names(row), cells(&row.Sum)...)...)
	}
	total := slices.Repeat([]string{""}, first)
	total[0] = "total"
	t.add(nil, append(total, cells(all)...)...)
	for i := range t.head {
		t.style(i, bold)
	}
	return t
}

// names adds the columns that say what a row is about, and returns a function for their cells.
func (r *usageRun) names(s *ctxdir.Store, t *table) func(row *tokens.Row) []string {
	short := shortIDsIn(s)
	switch r.by {
	case "context":
		t.head, t.shrink = []string{"CONTEXT", "TITLE"}, []int{1}
		return func(row *tokens.Row) []string { return []string{short.of(uuid.MustParse(row.Key)), row.Text} }
	case "prompt":
		t.head, t.shrink = []string{"CONTEXT", "PROMPT"}, []int{1}
		return func(row *tokens.Row) []string {
			return []string{short.of(row.Context), cmp.Or(row.Text, "(none)")}
		}
	case "message":
		t.head, t.shrink, t.names = []string{"CONTEXT", "BRANCH", "MESSAGE"}, []int{1}, []int{1}
		return func(row *tokens.Row) []string {
			return []string{short.of(row.Context), row.Branch, fmt.Sprint("#", row.Position)}
		}
	case "step":
		t.head, t.shrink, t.names = []string{"CONTEXT", "MESSAGE", "MODEL"}, []int{2}, []int{2}
		return func(row *tokens.Row) []string {
			return []string{short.of(row.Context), fmt.Sprint("#", row.Position), row.Model}
		}
	case "project":
		t.head, t.shrink, t.names = []string{"PROJECT"}, []int{0}, []int{0}
		return func(row *tokens.Row) []string { return []string{cmp.Or(lastFolders(row.Key), "(none)")} }
	}
	t.head, t.shrink, t.names = []string{map[string]string{"model": "MODEL", "day": "DAY"}[r.by]}, []int{0}, []int{0}
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
	text := "$" + dollars(s.Cost)
	if s.Rough {
		text = "~" + text
	}
	if s.Unpriced > 0 {
		text += "+"
	}
	return text
}

// dollars is an amount to the cent, or to two digits below a dime.
func dollars(d float64) string {
	if d > 0 && d < 0.1 {
		return strconv.FormatFloat(d, 'g', 2, 64)
	}
	return strconv.FormatFloat(d, 'f', 2, 64)
}

// shortCount is a number in three digits, such as 847, 12.3k and 4.56M.
func shortCount(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	f, unit := float64(n), 0
	for f >= 999.5 && unit < 6 {
		f /= 1000
		unit++
	}
	digits := 2
	switch {
	case f >= 99.95:
		digits = 0
	case f >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + string("kMGTPE"[unit-1])
}
