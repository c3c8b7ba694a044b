package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
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

// useLine is the usage of a command.
func useLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !strings.Contains(cmd.Use, " ") {
		return cmd.CommandPath() + " VERB"
	}
	return cmd.UseLine()
}

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
