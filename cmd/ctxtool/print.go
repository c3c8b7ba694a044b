package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
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
