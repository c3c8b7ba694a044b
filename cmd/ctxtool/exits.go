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

// useLine is the usage of a command.
func useLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " VERB"
	}
	return cmd.UseLine()
}
