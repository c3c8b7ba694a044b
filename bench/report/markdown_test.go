package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/bench/rows"
)

// TestGoals checks the table of goals as a program reads it: a line for each goal, which ends with whether it is met.
func TestGoals(t *testing.T) {
	result := func(key string, values ...float64) *rows.Result {
		r := &rows.Result{Key: key, Row: key, At: "10", Goal: "at most 1", Unit: rows.Nanoseconds}
		for _, v := range values {
			r.Checks = append(r.Checks, rows.Check{What: "ratio", Value: v, Limit: 1})
		}
		return r
	}
	plain := result("plain")
	report := &Report{Results: []*rows.Result{result("good", 0.5, 1), result("half", 0.5, 1.5), result("half", 1), plain}}
	text := string(report.markdown())
	var words []string
	for _, m := range regexp.MustCompile(`(?m)^\|.*(yes|\*\*no\*\*) \|$`).FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	if got, want := strings.Join(words, " "), "yes yes yes **no** yes"; got != want {
		t.Errorf("the goals are %s, want %s", got, want)
	}
	if want := "4 of 5 are met; 1 of 2 benchmarks meet all of theirs"; !strings.Contains(text, want) {
		t.Errorf("the report does not say %q:\n%s", want, text)
	}
}
