package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/bench/baseline"
)

// Methods that tables compare.
const (
	newest = "last N"
	bm25   = "BM25, whole messages"
	ours   = "assemble"
)

// description is what may make a fact easy or hard to find.
type description struct{ kind, place, distance string }

// describe says what kind of word a fact is, where it last stood, and how long ago.
func (t *session) describe(f fact) description {
	d := description{kind: "identifier"}
	switch {
	case strings.Contains(f.word, "/"):
		d.kind = "path"
	case strings.Trim(f.word, "0123456789.:-") == "":
		d.kind = "number"
	case strings.Contains(f.word, "."):
		d.kind = "file name, or name with a dot"
	}
	last := 0
	for i := range t.turns[:f.at] {
		if strings.Contains(t.turns[i].Text, f.word) {
			last = i
		}
	}
	switch turn := &t.turns[last]; {
	case turn.Result:
		d.place = "a tool's result"
	case turn.Role == "user":
		d.place = "the user's words"
	case t.calls[last]:
		d.place = "a call of a tool"
	default:
		d.place = "the model's words"
	}
	switch far := f.at - last; {
	case far < 100:
		d.distance = "40 to 99 messages before"
	case far < 300:
		d.distance = "100 to 299 messages before"
	default:
		d.distance = "300 messages before or more"
	}
	return d
}

// print writes the tables: each method with the lead over it, each session, and each sort of fact.
func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "| | found | lead of %s, points |\n| --- | --- | --- |\n", ours)
	for _, method := range r.order {
		lead := ""
		if method != ours {
			lead = baseline.Lead(r.found[ours], r.found[method]).Points()
		}
		fmt.Fprintf(w, "| %s | %v | %s |\n", method, baseline.Estimate(r.found[method]), lead)
	}
	compared := []string{newest, bm25, ours}
	head := func(of string) {
		fmt.Fprintf(w, "\n| %s | facts | %s |\n| --- | --- | --- | --- | --- |\n", of, strings.Join(compared, " | "))
	}
	row := func(name string, facts int, found []int) {
		fmt.Fprintf(w, "| %s | %d |", name, facts)
		for _, n := range found {
			fmt.Fprintf(w, " %d |", n)
		}
		fmt.Fprintln(w)
	}
	head("session")
	for i, name := range r.sessions {
		var found []int
		for _, method := range compared {
			found = append(found, hits(r.found[method][i]))
		}
		row(name, len(r.found[ours][i]), found)
	}
	var cases [][]bool
	for _, method := range compared {
		cases = append(cases, slices.Concat(r.found[method]...))
	}
	for _, sort := range []struct {
		name string
		of   func(d description) string
	}{
		{"kind of word", func(d description) string { return d.kind }},
		{"where it last stood", func(d description) string { return d.place }},
		{"how long ago", func(d description) string { return d.distance }},
	} {
		head(sort.name)
		var values []string
		for _, d := range r.facts {
			values = append(values, sort.of(d))
		}
		names := slices.Clone(values)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			facts, found := 0, make([]int, len(compared))
			for i, value := range values {
				if value != name {
					continue
				}
				facts++
				for k := range compared {
					found[k] += hits(cases[k][i : i+1])
				}
			}
			row(name, facts, found)
		}
	}
}

// hits counts the cases that are true.
func hits(cases []bool) (n int) {
	for _, hit := range cases {
		if hit {
			n++
		}
	}
	return n
}
