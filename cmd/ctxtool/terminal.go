package main

import (
	"fmt"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
)

// newProgress returns a bar on stderr, nil if nobody would see it or wants it.
func (a *app) newProgress(what string) *term.Progress {
	if a.quiet || a.noProgress {
		return nil
	}
	return term.NewProgress(a.stderr, a.env, what)
}

// page sends results through a pager, if a user is there to use it.
func (a *app) page() {
	if a.json || a.noPager {
		return
	}
	a.out.Page(func(err error) {
		if !a.quiet {
			// Not a note: a note flushes the output, and this runs during a flush.
			fmt.Fprintln(a.stderr, "ctxtool: cannot start $PAGER:", plain.OneLine(err.Error()))
		}
	})
}

func (a *app) printTable(t *term.Table) error {
	if !a.json {
		return t.Print(a.out, a.out.Columns(), a.out.Colours())
	}
	for _, r := range t.Records {
		if err := a.record(r); err != nil {
			return err
		}
	}
	return nil
}

// printFitting prints a line for people. On a terminal, it cuts the end of a line that is too long.
func (a *app) printFitting(line string) error {
	if a.out.OnTerminal() {
		line = plain.Shorten(line, max(a.out.Columns(), term.MinWidth))
	}
	return a.printf("%s\n", line)
}
