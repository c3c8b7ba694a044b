package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

// yesFlag adds --yes to a verb that asks before it removes something for good.
func (a *app) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask before removing anything")
}

// undoable prepares a verb whose removals the trash can restore: it does not ask, but takes --yes, as other verbs do.
func (a *app) undoable(cmd *cobra.Command) {
	a.yesFlag(cmd)
	_ = cmd.Flags().MarkHidden("yes")
}

// noteUndo says how to bring back what a verb removed, by its name.
func (a *app) noteUndo(name string, several bool) {
	if a.json || a.dryRun {
		return
	}
	if strings.Trim(name, wordCharacters) != "" {
		name = strconv.Quote(name)
	}
	a.note("restore %s with: ctxtool trash restore %s", map[bool]string{true: "them", false: "it"}[several], name)
}

// wordCharacters are characters that a shell takes literally.
const wordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"

// asks reports whether a verb asks a person before it removes something for good: on a terminal, unless --yes is given.
func (a *app) asks() bool { return !a.yes && !a.dryRun && !a.json && a.asksOnTerminal() }

// asksOnTerminal reports whether a person can see a question and answer it.
func (a *app) asksOnTerminal() bool {
	return term.Is(a.stdin) && term.Is(a.stderr)
}

// confirm asks a person whether to do something, if the verb asks at all. Any answer but yes ends the verb.
func (a *app) confirm(ctx context.Context, format string, args ...any) error {
	if !a.asks() {
		return nil
	}
	yes, err := a.ask(ctx, fmt.Sprintf(format, args...))
	if err == nil && !yes {
		err = &verbError{exitFailed, "nothing was changed", ""}
	}
	return err
}

// ask asks a question on the terminal. No answer is a no. Only what is typed after the question answers it: text that was
// pasted or typed before, such as the next command, is dropped.
func (a *app) ask(ctx context.Context, question string) (yes bool, err error) {
	if err := a.out.Flush(); err != nil {
		return false, err
	}
	if f, ok := a.stdin.(*os.File); ok {
		term.DiscardTyped(f)
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", plain.OneLine(question))
	answer := ""
	err = interruptible(ctx, func() error {
		answer, _ = bufio.NewReader(a.stdin).ReadString('\n')
		return nil
	})
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))), err
}

// interruptible returns when f does, or when ctx ends. Nothing else interrupts a read from a terminal.
func interruptible(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
