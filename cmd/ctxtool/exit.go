package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// The exit statuses, as the contract has them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitProblems    = 3
	exitNoStore     = 10
	exitLocked      = 11
	exitInterrupted = 130
)

// usageError is about how the command was called.
type usageError struct {
	text string
	hint string
}

func (e *usageError) Error() string { return e.text }

func usage(cmd *cobra.Command, format string, args ...any) *usageError {
	return &usageError{fmt.Sprintf(format, args...), "usage: " + useLine(cmd)}
}

// problemsError says that the verb did what it could and something was wrong all the same.
type problemsError struct {
	text string
	hint string
}

func (e *problemsError) Error() string { return e.text }

// summedError sums up errors that were told already.
type summedError struct {
	text string
	err  error
}

func (e *summedError) Error() string { return e.text }
func (e *summedError) Unwrap() error { return e.err }

// errHelp: the help was shown in place of doing something.
var errHelp = errors.New("a verb is missing")

// errOutput is an error of writing to stdout.
type errOutput struct{ err error }

func (e errOutput) Error() string { return "writing the output: " + e.err.Error() }
func (e errOutput) Unwrap() error { return e.err }

// readerLeft reports whether who read the output went away: "ctxtool show … | head".
func readerLeft(err error) bool {
	var out errOutput
	return errors.As(err, &out) && errors.Is(out.err, syscall.EPIPE)
}

// exitCode is the one place that maps errors to exit statuses.
func exitCode(ctx context.Context, err error) int {
	var (
		use      *usageError
		problems *problemsError
	)
	switch {
	case err == nil || readerLeft(err):
		return exitOK
	case errors.As(err, &use) || errors.Is(err, errHelp):
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &problems):
		return exitProblems
	case errors.Is(err, ctxdir.ErrNoStore):
		return exitNoStore
	case errors.Is(err, ctxdir.ErrLocked):
		return exitLocked
	}
	return exitFailed
}

// errorRecord is an error as --json prints it, on stderr.
type errorRecord struct {
	Record  string   `json:"record"`
	Code    int      `json:"code"`
	Error   string   `json:"error"`
	Hint    string   `json:"hint,omitempty"`
	Line    int64    `json:"line,omitempty"` // of the input
	Path    string   `json:"path,omitempty"`
	Matches []string `json:"matches,omitempty"`
}

// finish tells an error and returns the exit status.
func (a *app) finish(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	switch {
	case code == exitOK:
		return code
	case errors.Is(err, errHelp) && !a.json, code == exitInterrupted && a.silent:
		return code
	case code == exitInterrupted:
		if _, ok := displayOf(a.stderr); ok && !a.dumb() {
			fmt.Fprint(a.stderr, eraseLine) // of the ^C that the terminal wrote, and of a bar that was being drawn
		}
		a.fail(errorRecord{Code: code, Error: "interrupted"})
		return code
	}
	rec := errorRecord{Code: code, Error: err.Error(), Hint: hint(err)}
	for _, id := range placeOf(err).Matches {
		rec.Matches = append(rec.Matches, id.String())
	}
	a.fail(rec)
	return code
}

// mostMatches bounds the ids that a line for people lists.
const mostMatches = 20

// fail prints an error: one line on stderr.
func (a *app) fail(rec errorRecord) {
	_ = a.out.Flush() // likewise: see note
	if a.json {
		rec.Record = "error"
		line := append(encode(rec), '\n')
		if _, ok := displayOf(a.stderr); ok {
			line = (&sanitiser{json: true}).shown(line)
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
		b.WriteString(": " + strings.Join(rec.Matches[:min(n, mostMatches)], ", "))
		if n > mostMatches {
			fmt.Fprintf(&b, " and %d more", n-mostMatches)
		}
	}
	line := a.colours(a.stderr).paint(redder, "ctxtool:") + oneLine(b.String())
	if rec.Hint != "" {
		line += a.colours(a.stderr).paint(dim, " ("+oneLine(rec.Hint)+")")
	}
	fmt.Fprintln(a.stderr, line)
}

// warn prints an error that does not end the verb.
func (a *app) warn(rec errorRecord) {
	rec.Code = exitProblems
	a.fail(rec)
}

func isInvalid(err error) bool { return errors.Is(err, ctxdir.ErrInvalid) }

// placeOf says where something failed, as far as the error does.
func placeOf(err error) *ctxdir.Error {
	where := &ctxdir.Error{}
	errors.As(err, &where)
	return where
}

// cause is an error without the operation that failed.
func cause(err error) error {
	if where := placeOf(err); where.Err != nil {
		return where.Err
	}
	return err
}

// during names the operation that a step belongs to in the error of that step.
func during(op string, err error) error {
	where := *placeOf(err)
	if where.Err == nil {
		return err
	}
	where.Op = op
	return &where
}
