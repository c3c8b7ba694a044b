package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exitsKey is the annotation of a command that lists its exit statuses, one per line.
const exitsKey = "exit status"

// Exit statuses beyond those that every verb has.
var (
	ofStores   = []int{exitNoStore, exitLocked, exitInterrupted}
	ofNewStore = []int{exitLocked, exitInterrupted} // of verbs that create a missing store
)

// exits annotates a command with its exit statuses. problems explains status 3; "" omits it.
func exits(problems string, extra ...int) map[string]string {
	lines := []string{
		fmt.Sprint(exitOK, " ok"),
		fmt.Sprint(exitFailed, " failed"),
		fmt.Sprint(exitUsage, " wrong usage"),
	}
	if problems != "" {
		lines = append(lines, fmt.Sprint(exitProblems, " ", problems))
	}
	texts := map[int]string{exitNoStore: "no store there", exitLocked: "timed out waiting for a lock", exitInterrupted: "interrupted"}
	for _, status := range extra {
		lines = append(lines, fmt.Sprint(status, " ", texts[status]))
	}
	return map[string]string{exitsKey: strings.Join(lines, "\n")}
}

// between checks that a verb has from least to limit arguments; a negative limit allows any number.
func between(least, limit int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && least == 1:
			return usage(cmd, "missing argument")
		case len(args) < least:
			return usage(cmd, "expected %d arguments, got %d", least, len(args))
		case limit >= 0 && len(args) > limit:
			return usage(cmd, "unexpected argument %q", args[limit])
		}
		return nil
	}
}

// needVerb runs a command that only groups others: it shows the help, or rejects an unknown verb.
func needVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		_ = cmd.Help()
		return errHelp
	}
	err := usage(cmd, "unknown verb %q", strings.TrimPrefix(cmd.CommandPath()+" ", "ctxtool ")+args[0])
	err.hint = fmt.Sprintf("run %q to list the verbs", cmd.CommandPath()+" --help")
	if like := suggestions(cmd, args[0]); len(like) > 0 {
		err.hint = "did you mean " + strings.Join(like, " or ") + "?"
	}
	return err
}

// otherNames are what people call verbs who know them from other commands.
var otherNames = map[string]string{
	"list": "ls", "cat": "show", "view": "show", "print": "show", "delete": "rm", "remove": "rm", "del": "rm", "undo": "trash restore",
	"undelete": "trash restore", "create": "new", "add": "append", "find": "search", "verify": "check", "fsck": "check", "fork": "branch fork",
	"switch": "branch switch", "rewind": "branch rewind", "purge": "trash empty", "prune": "gc", "settings": "config", "history": "log",
	"trash show": "trash ls", "trash list": "trash ls", "trash rm": "trash empty", "trash delete": "trash empty", "trash purge": "trash empty",
	"branch list": "branch ls", "branch create": "branch new", "branch delete": "branch rm", "branch remove": "branch rm",
}

// suggestions are the verbs that an unknown one may stand for: one with this meaning, or else those spelt like it.
func suggestions(cmd *cobra.Command, unknown string) []string {
	name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath()+" "+unknown, "ctxtool"), " ")
	if verb, ok := otherNames[name]; ok {
		return []string{"ctxtool " + verb}
	}
	return cmd.SuggestionsFor(unknown)
}
