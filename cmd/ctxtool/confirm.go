package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// yesFlag adds --yes to a verb that asks before it removes something.
func (a *app) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask before removing anything")
}

// asks reports whether a verb asks a person before it removes something: on a terminal, unless --yes is given.
func (a *app) asks() bool { return !a.yes && !a.dryRun && !a.json && a.asksOnTerminal() }

// asksOnTerminal reports whether a person can see a question and answer it.
func (a *app) asksOnTerminal() bool {
	_, in := displayOf(a.stdin)
	_, seen := displayOf(a.stderr)
	return in && seen
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

// ask asks a question on the terminal. No answer is a no.
func (a *app) ask(ctx context.Context, question string) (yes bool, err error) {
	if err := a.out.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", oneLine(question))
	answer := ""
	err = interruptible(ctx, func() error {
		answer, _ = bufio.NewReader(a.stdin).ReadString('\n')
		return nil
	})
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))), err
}
