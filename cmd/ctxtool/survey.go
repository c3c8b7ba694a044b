package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

// summaryRecord ends the records of a verb that works on many contexts.
type summaryRecord struct {
	Record   string         `json:"record"`
	Contexts int            `json:"contexts"`
	Messages *int64         `json:"messages,omitempty"`
	Findings int            `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
}

// survey is the output of check and repair: findings behind a progress bar, and a summary.
type survey struct {
	a      *app
	bar    *progress
	all    int // contexts to examine
	last   ctxdir.CheckProgress
	byKind map[string]int
	count  int
}

// newSurvey begins a survey of contexts, of all without any.
func (a *app) newSurvey(label string, s *ctxdir.Store, contexts []uuid.UUID) *survey {
	v := &survey{a: a, bar: a.newProgress(label), all: len(contexts), byKind: map[string]int{}}
	if v.bar != nil && len(contexts) == 0 {
		v.all = len(shortIDsIn(s))
	}
	return v
}

// progress shows one bar for the whole run: it counts contexts, or the messages of the only one.
func (v *survey) progress(p ctxdir.CheckProgress) {
	v.last = p
	switch {
	case v.all > 1:
		v.bar.contexts(p.Contexts, v.all)
	case p.Of > 0:
		v.bar.steps("messages", p.Done, p.Of)
	}
}

// print prints a finding: with --json its record, else one line. On a terminal, where the ids of a path leave no room
// in the line, the path goes to a second one.
func (v *survey) print(f ctxdir.Finding, r any) error {
	v.bar.clear()
	v.count++
	v.byKind[string(f.Kind)]++
	a := v.a
	if a.json {
		return a.record(r)
	}
	colours := a.colours(a.out.w)
	line := colours.paint(bold, string(f.Kind))
	if f.Severity != "" {
		style := map[ctxdir.Severity]string{ctxdir.SeverityError: red, ctxdir.SeverityWarning: yellow}[f.Severity]
		line = colours.paint(style, fmt.Sprintf("%-7s", f.Severity)) + "  " + line
	}
	where := cmp.Or(f.Path, record.ID(f.Context))
	detail := oneLine(strings.TrimPrefix(f.Detail, where+": "))
	if f.Repairable {
		detail += " (repairable)"
	}
	switch {
	case where == "":
		line += ": " + detail
	case a.onTerminal():
		line += ": " + detail + "\n  " + colours.paint(dim, oneLine(where))
	default:
		line += "  " + where + ": " + detail
	}
	return a.printf("%s\n", line)
}

// end prints the summary: a record, or a note for people.
func (v *survey) end(format string, args ...any) error {
	v.bar.clear()
	if v.a.json {
		return v.a.record(summaryRecord{"summary", v.last.Contexts, &v.last.Messages, v.count, v.byKind})
	}
	v.a.note(format, args...)
	return nil
}
