package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tally adds outcomes up.
type Tally struct {
	Rounds       int
	Acknowledged int
	Findings     map[string]int
	Troubles     map[Trouble]int
}

// Add adds an outcome.
func (t *Tally) Add(o Outcome) {
	if t.Findings == nil {
		t.Findings, t.Troubles = map[string]int{}, map[Trouble]int{}
	}
	t.Rounds++
	t.Acknowledged += o.Acknowledged
	for kind, n := range o.Findings {
		t.Findings[kind] += n
	}
	for _, p := range o.Problems {
		t.Troubles[p.Trouble]++
	}
}

// TallyHead is the head of a Markdown table of tallies, behind the columns of whoever makes it.
const TallyHead = " rounds | acknowledged | lost | altered | invented | unreadable | damaged | unsettled | refused | " +
	"found by the first check |"

// TallyLine is the line below that head.
const TallyLine = "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"

// Row is a tally in such a table.
func (t *Tally) Row() string {
	var row strings.Builder
	fmt.Fprintf(&row, " %d | %d |", t.Rounds, t.Acknowledged)
	for _, trouble := range []Trouble{Lost, Altered, Invented, Unreadable, Damaged, Unsettled, Refused} {
		fmt.Fprintf(&row, " %d |", t.Troubles[trouble])
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(t.Findings)) {
		kinds = append(kinds, fmt.Sprintf("%s: %d", kind, t.Findings[kind]))
	}
	if len(kinds) == 0 {
		kinds = []string{"nothing"}
	}
	fmt.Fprintf(&row, " %s |", strings.Join(kinds, ", "))
	return row.String()
}
