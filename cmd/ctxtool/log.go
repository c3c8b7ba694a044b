package main

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

// reachRecord ends a log: commits up to this one are not listed.
type reachRecord struct {
	Record string `json:"record"`
	Before uint64 `json:"unlisted"`
}

func (a *app) logCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "log CONTEXT",
		Short: "List the commits of a context",
		Long: `List the commits of a context in order: its creation, messages, branches, metadata. If a row
stands for several commits, its number is that of the first one. If commits are missing or
damaged, a note says so.`,
		Example:           "  ctxtool log 7c2f",
		Annotations:       exits("the context has a problem", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE:              a.onContext(a.log, ctxdir.Options{ReadOnly: true}),
	}
}

func (a *app) log(ctx context.Context, c *ctxdir.Context, _ []string) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	w, err := c.Watch(ctx, 0)
	if err != nil {
		return err
	}
	from := uint64(0)
	a.page()
	l := commitLog{a: a, colours: a.out.Colours()}
	if err := l.created(c.Metadata()); err != nil {
		return closeAfter(w.Close, err)
	}
	for e := range w.Pending(ctx) {
		switch e.Kind {
		case ctxdir.EventProblem:
			err = e.Problem
		case ctxdir.EventResync:
			from = e.Seq
		default:
			err = l.event(&e)
		}
		if err != nil {
			return closeAfter(w.Close, err)
		}
	}
	if err := closeAfter(w.Close, l.flush()); err != nil {
		return err
	}
	switch {
	case a.json:
		err = a.record(reachRecord{"reach", from})
	case from > 0:
		a.note("not listed: commits up to %d, some of which are missing or damaged", from)
	}
	if err != nil {
		return err
	}
	return problemOf(c)
}

// commitLog prints commits. For people, messages that follow each other on a branch are one line.
type commitLog struct {
	a       *app
	colours term.Painter
	first   *ctxdir.Event // of the appended messages that are not printed yet
	n       int64
}

func (l *commitLog) event(e *ctxdir.Event) error {
	r := record.OfChange(e)
	if l.a.json {
		r.Record = "commit"
		return l.a.record(r)
	}
	if r.Op == "append" {
		if f := l.first; f != nil && f.Branch == e.Branch && f.Message.Position+l.n == e.Message.Position {
			l.n++
			return nil
		}
		err := l.flush()
		l.first, l.n = e, 1
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	return l.line(e, l.text(e))
}

// created prints the first commit.
func (l *commitLog) created(m *ctxdir.Metadata) error {
	r := record.OfCreation(m)
	if l.a.json {
		r.Record = "commit"
		return l.a.record(r)
	}
	return l.line(&ctxdir.Event{Seq: r.Seq, At: r.At}, "created the context")
}

func (l *commitLog) text(e *ctxdir.Event) string {
	name, branch := plain.OneLine(e.Branch), ctxdir.BranchInfo{}
	if len(e.Branches) > 0 {
		branch = e.Branches[0]
	}
	switch record.Verb(e) {
	case "replace":
		return fmt.Sprintf("%s message %d of %s", e.Op, e.Message.Position, name)
	case "fork":
		return fmt.Sprintf("forked branch %s from %s", name, forkPoint(branch))
	case "new":
		return "created branch " + name
	case "rename":
		return fmt.Sprintf("renamed branch %s to %s", plain.OneLine(e.Was), name)
	case "rewind":
		return fmt.Sprintf("rewound branch %s to %s", name, plain.Count(branch.Base, "message"))
	case "rm":
		return "removed branch " + name
	case "meta":
		return changesOf(e)
	}
	return string(e.Op)
}

// flush prints the messages that wait.
func (l *commitLog) flush() error {
	e := l.first
	if e == nil {
		return nil
	}
	l.first = nil
	if l.n == 1 {
		return l.line(e, fmt.Sprintf("appended message %d to %s", e.Message.Position, plain.OneLine(e.Branch)))
	}
	return l.line(e, fmt.Sprintf("appended %s to %s, from %d", plain.Count(l.n, "message"), plain.OneLine(e.Branch), e.Message.Position))
}

func (l *commitLog) line(e *ctxdir.Event, text string) error {
	seq := l.colours.Paint(term.Bold, fmt.Sprintf("%6d", e.Seq))
	return l.a.printFitting(fmt.Sprintf("%s  %s  %s", seq, l.colours.Paint(term.Dim, e.At.Local().Format("2006-01-02 15:04:05")), text))
}
