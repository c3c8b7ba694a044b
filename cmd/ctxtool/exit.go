package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitProblems    = 3
	exitNoStore     = 10
	exitLocked      = 11
	exitInterrupted = 130
)

// verbError ends a verb with an exit status and a hint, which may be empty.
type verbError struct {
	status int
	text   string
	hint   string
}

func (e *verbError) Error() string { return e.text }

// usage rejects the arguments of a command, with its usage as the hint.
func usage(cmd *cobra.Command, format string, args ...any) *verbError {
	return badArgument("usage: "+useLine(cmd), format, args...)
}

// badArgument rejects an argument.
func badArgument(hint, format string, args ...any) *verbError {
	return &verbError{exitUsage, fmt.Sprintf(format, args...), hint}
}

// problems ends a verb that completed, but found problems or failed on some items.
func problems(hint, format string, args ...any) *verbError {
	return &verbError{exitProblems, fmt.Sprintf(format, args...), hint}
}

// errHelp ends a command that showed its help instead of running.
var errHelp = errors.New("a verb is missing")

// exitCode is the one place that maps errors to exit statuses.
func exitCode(ctx context.Context, err error) int {
	var verb *verbError
	switch {
	case err == nil || term.ReaderLeft(err):
		return exitOK
	case errors.As(err, &verb):
		return verb.status
	case errors.Is(err, errHelp):
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, ctxdir.ErrNoStore):
		return exitNoStore
	case errors.Is(err, ctxdir.ErrLocked):
		return exitLocked
	}
	return exitFailed
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

// finish prints an error and returns the exit status.
func (a *app) finish(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	switch {
	case code == exitOK:
		return code
	case errors.Is(err, errHelp) && !a.json, code == exitInterrupted && a.silent:
		return code
	case code == exitInterrupted:
		term.EraseLine(a.stderr, a.env) // the ^C of the terminal, or a progress bar
		a.fail(errorRecord{Code: code, Error: "interrupted"})
		return code
	}
	rec := errorRecord{Code: code, Error: err.Error(), Hint: hint(err)}
	if errors.Is(err, ctxdir.ErrNoStore) {
		rec.Hint = a.noStoreHint()
	}
	for _, id := range libraryError(err).Matches {
		rec.Matches = append(rec.Matches, id.String())
	}
	a.fail(rec)
	return code
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

// libraryError returns the library's error in err, or an empty one.
func libraryError(err error) *ctxdir.Error {
	e := &ctxdir.Error{}
	errors.As(err, &e)
	return e
}

// cause is an error without the operation that failed.
func cause(err error) error {
	if e := libraryError(err); e.Err != nil {
		return e.Err
	}
	return err
}
