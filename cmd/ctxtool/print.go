package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
)

// record prints a value as a line of JSON.
func (a *app) record(v any) error {
	_, err := a.out.Write(append(record.Encode(v), '\n'))
	return err
}

// result prints a record with --json, else a line for people.
func (a *app) result(r any, format string, args ...any) error {
	if a.json {
		return a.record(r)
	}
	return a.printf(format+"\n", args...)
}

// printf prints text for people.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// withReport runs an operation that reports its steps to print. An error of print cancels the operation.
func withReport[T any](ctx context.Context, print func(T) error, run func(ctx context.Context, report func(T)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	err := run(ctx, func(x T) {
		if failed != nil {
			return
		}
		if failed = print(x); failed != nil {
			cancel()
		}
	})
	return cmp.Or(failed, err)
}

// note prints a note on stderr, after the results so far.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		_ = a.out.Flush() // an error returns when the verb ends
		fmt.Fprintln(a.stderr, "ctxtool: "+plain.OneLine(fmt.Sprintf(format, args...)))
	}
}

// detail prints a note that only --verbose asks for.
func (a *app) detail(format string, args ...any) {
	if a.verbose {
		a.note(format, args...)
	}
}

// errorRecord is an error on stderr; --json prints it as a record.
type errorRecord struct {
	Record  string   `json:"record"`
	Code    int      `json:"code"`
	Error   string   `json:"error"`
	Hint    string   `json:"hint,omitempty"`
	Line    int64    `json:"line,omitempty"` // of the input
	Path    string   `json:"path,omitempty"`
	Matches []string `json:"matches,omitempty"`
}

// maxMatches bounds the ids that an error lists for people.
const maxMatches = 20

// fail prints an error: one line on stderr.
func (a *app) fail(rec errorRecord) {
	_ = a.out.Flush() // see note
	if a.json {
		rec.Record = "error"
		line := append(record.Encode(rec), '\n')
		if term.Is(a.stderr) {
			line = (&term.Sanitiser{JSON: true}).Shown(line)
		}
		_, _ = a.stderr.Write(line)
		return
	}
	var b strings.Builder
	b.WriteByte(' ')
	if rec.Path != "" {
		b.WriteString(rec.Path + ":")
	}
	if rec.Line > 0 {
		fmt.Fprintf(&b, "%d:", rec.Line)
	}
	if rec.Path != "" || rec.Line > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(rec.Error)
	if n := len(rec.Matches); n > 0 {
		b.WriteString(": " + strings.Join(rec.Matches[:min(n, maxMatches)], ", "))
		if n > maxMatches {
			fmt.Fprintf(&b, " and %d more", n-maxMatches)
		}
	}
	colours := term.Colours(a.stderr, a.env)
	line := colours.Paint(term.BoldRed, "ctxtool:") + plain.OneLine(b.String())
	if rec.Hint != "" {
		line += colours.Paint(term.Dim, " ("+plain.OneLine(rec.Hint)+")")
	}
	fmt.Fprintln(a.stderr, line)
}

// warn prints an error that does not end the verb.
func (a *app) warn(rec errorRecord) {
	rec.Code = exitProblems
	a.fail(rec)
}

// warnOf prints an error of the library that does not end the verb.
func (a *app) warnOf(err error) { a.warn(errorRecord{Error: err.Error(), Hint: hint(err)}) }
