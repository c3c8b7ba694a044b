package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
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
	bar    *term.Progress
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
		v.bar.Items("contexts", p.Contexts, v.all)
	case p.Of > 0:
		v.bar.Steps("messages", p.Done, p.Of)
	}
}

// print prints a finding: with --json its record, else one line. On a terminal, where the ids of a path leave no room
// in the line, the path goes to a second one.
func (v *survey) print(f ctxdir.Finding, r any) error {
	v.bar.Clear()
	v.count++
	v.byKind[f.Kind]++
	a := v.a
	if a.json {
		return a.record(r)
	}
	colours := a.out.Colours()
	line := colours.Paint(term.Bold, f.Kind)
	if f.Severity != "" {
		style := map[ctxdir.Severity]string{ctxdir.SeverityError: term.Red, ctxdir.SeverityWarning: term.Yellow}[f.Severity]
		line = colours.Paint(style, fmt.Sprintf("%-7s", f.Severity)) + "  " + line
	}
	where := cmp.Or(f.Path, record.ID(f.Context))
	detail := plain.OneLine(strings.TrimPrefix(f.Detail, where+": "))
	if f.Repairable {
		detail += " (repairable)"
	}
	switch {
	case where == "":
		line += ": " + detail
	case a.out.OnTerminal():
		line += ": " + detail + "\n  " + colours.Paint(term.Dim, plain.OneLine(where))
	default:
		line += "  " + where + ": " + detail
	}
	return a.printf("%s\n", line)
}

// end prints the summary: a record, or a note for people.
func (v *survey) end(format string, args ...any) error {
	v.bar.Clear()
	if v.a.json {
		return v.a.record(summaryRecord{"summary", v.last.Contexts, &v.last.Messages, v.count, v.byKind})
	}
	v.a.note(format, args...)
	return nil
}
