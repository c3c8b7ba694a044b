package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
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
	return &usageError{fmt.Sprintf(format, args...), "usage: " + cmd.UseLine()}
}

// problemsError says that the verb did what it could and something was wrong all the same.
type problemsError struct {
	text string
	hint string
}

func (e *problemsError) Error() string { return e.text }

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
	case errors.Is(err, errHelp) && !a.json:
		return code
	case code == exitInterrupted:
		a.fail(errorRecord{Code: code, Error: "interrupted"})
		return code
	}
	rec := errorRecord{Code: code, Error: err.Error(), Hint: hint(err)}
	var ambiguous *ctxdir.AmbiguousError
	if errors.As(err, &ambiguous) {
		for _, id := range ambiguous.Matches {
			rec.Matches = append(rec.Matches, id.String())
		}
	}
	a.fail(rec)
	return code
}

// mostMatches bounds the ids that a line for people lists.
const mostMatches = 20

// fail prints an error: one line on stderr.
func (a *app) fail(rec errorRecord) {
	if a.json {
		rec.Record = "error"
		_, _ = a.stderr.Write(append(encode(rec), '\n'))
		return
	}
	var b strings.Builder
	b.WriteString("ctxtool: ")
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
	if rec.Hint != "" {
		b.WriteString(" (" + rec.Hint + ")")
	}
	fmt.Fprintln(a.stderr, oneLine(b.String()))
}

// warn prints an error that does not end the verb.
func (a *app) warn(rec errorRecord) {
	rec.Code = exitProblems
	a.fail(rec)
}

// hint says what to try next.
func hint(err error) string {
	var (
		use       *usageError
		problems  *problemsError
		ambiguous *ctxdir.AmbiguousError
		where     *ctxdir.Error
	)
	switch {
	case errors.As(err, &use):
		return use.hint
	case errors.As(err, &problems):
		return problems.hint
	case errors.As(err, &ambiguous):
		return "give more of the id"
	}
	id := "CONTEXT"
	if errors.As(err, &where) && where.Context != uuid.Nil {
		id = where.Context.String()
	}
	switch {
	case errors.Is(err, ctxdir.ErrNoStore):
		return `"ctxtool init" makes one, --store names another`
	case errors.Is(err, ctxdir.ErrLocked):
		return "--lock-timeout waits longer"
	case errors.Is(err, ctxdir.ErrActive):
		return fmt.Sprintf(`"ctxtool branch switch %s NAME" makes another one active`, id)
	case errors.Is(err, ctxdir.ErrFormat):
		return "a newer ctxtool may read it"
	case where != nil && (where.Op == "restore" || where.Op == "find in trash of"):
		return `"ctxtool trash ls" lists the items`
	case errors.Is(err, ctxdir.ErrPosition):
		return fmt.Sprintf(`"ctxtool branch ls %s" tells how many messages there are`, id)
	case errors.Is(err, ctxdir.ErrShared):
		return "--shared changes it in all of them"
	case where != nil && where.Op == "migrate":
		return "" // the reason is all that is known
	case errors.Is(err, legacy.ErrDamaged):
		return fmt.Sprintf(`nothing mends a legacy context; "ctxtool rm %s" moves it to the trash`, id)
	case errors.Is(err, ctxdir.ErrMetadata), errors.Is(err, ctxdir.ErrDamaged):
		return fmt.Sprintf(`"ctxtool repair %s" mends what can be mended`, id)
	case errors.Is(err, ctxdir.ErrNotExist) && where != nil && where.Op == "find":
		return `"ctxtool ls" lists the contexts`
	case errors.Is(err, ctxdir.ErrNotExist) && where != nil && (where.Branch != "" || where.Op == "open") && where.ID == uuid.Nil:
		return fmt.Sprintf(`"ctxtool branch ls %s" lists the branches`, id)
	case errors.Is(err, ctxdir.ErrConflict):
		return "another id, or none, adds it as a new message"
	case errors.Is(err, ctxdir.ErrDurability):
		return "whether it is stored is not certain: append again with the same id"
	case errors.Is(err, os.ErrPermission):
		return "check who owns the store's folder"
	}
	return ""
}

func isInvalid(err error) bool { return errors.Is(err, ctxdir.ErrInvalid) }

// cause is an error without what was being done.
func cause(err error) error {
	var where *ctxdir.Error
	if errors.As(err, &where) {
		return where.Err
	}
	return err
}
