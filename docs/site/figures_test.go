package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	report = regexp.MustCompile(`\[[^\]]*\]\(([^)#:]+\.md)[^)]*\)`)
	links  = regexp.MustCompile(`\[[^\]]*\]\([^)]*\)|` + "`[^`]*`")
	number = regexp.MustCompile(`\b\d[\d,.]*\d|\b\d`)
)

// figures are the rows of tables in Markdown that have numbers outside of names and links.
func figures(text string) (rows []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && number.MatchString(links.ReplaceAllString(line, "")) {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return rows
}

// missing are the numbers of a row that none of the reports has to which the row links.
func missing(row string, read func(name string) string) (list []string) {
	var reports strings.Builder
	for _, link := range report.FindAllStringSubmatch(row, -1) {
		reports.WriteString(read(link[1]))
	}
	for _, n := range number.FindAllString(links.ReplaceAllString(row, ""), -1) {
		if !regexp.MustCompile(`(^|[^\d,.])` + regexp.QuoteMeta(n) + `($|[^\d,.]|[,.]\D)`).MatchString(reports.String()) {
			list = append(list, n)
		}
	}
	return list
}

// TestFigures: every number in a table of README and of the comparison is in a report to which its row links.
func TestFigures(t *testing.T) {
	for _, page := range []struct {
		name  string
		least int // rows with figures
	}{{"README.md", 3}, {"docs/COMPARISON.md", 15}} {
		name := filepath.Join("../..", page.name)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rows := figures(string(b))
		if len(rows) < page.least {
			t.Errorf("%s has %d rows with figures", page.name, len(rows))
		}
		for _, row := range rows {
			if strings.Contains(row, "`0.000003`") || strings.Contains(row, "20-digit") {
				continue // what is stored, not what was measured
			}
			for _, n := range missing(row, func(link string) string {
				b, err := os.ReadFile(filepath.Join(filepath.Dir(name), link))
				if err != nil {
					t.Error(err)
				}
				return string(b)
			}) {
				t.Errorf("%s: no report to which this row links has %s:\n%s", page.name, n, row)
			}
		}
	}
}

// TestMissing: a number counts only as a whole, and only in a report of its row.
func TestMissing(t *testing.T) {
	reports := map[string]string{"a.md": "| 1,388 µs | 22.2 s, 7 |\n", "b.md": "388"}
	for row, want := range map[string]string{
		"| x | 22.2 s | 7 | [a](a.md#x) |": "",
		"| x | 388 µs | [a](a.md) |":       "388",
		"| x | 22 s | 2.2 | [a](a.md) |":   "22 2.2",
		"| x | 388 | no report |":          "388",
		"| `v1.2` | [7](b.md) | 388 |":     "",
	} {
		if got := strings.Join(missing(row, func(name string) string { return reports[name] }), " "); got != want {
			t.Errorf("%s: %q, wanted %q", row, got, want)
		}
	}
}
