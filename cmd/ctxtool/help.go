package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
)

// exitsKey is the annotation of a command that says how it can end: a line for each exit status.
const exitsKey = "exit status"

// Exit statuses that verbs have beside those that all of them have.
var (
	ofStores   = []int{exitNoStore, exitLocked, exitInterrupted}
	ofNewStore = []int{exitLocked, exitInterrupted} // of verbs that make a store where there is none
)

// exits annotates a command. problems is what status 3 tells, "" where it cannot come.
func exits(problems string, besides ...int) map[string]string {
	lines := []string{
		fmt.Sprint(exitOK, " ok"),
		fmt.Sprint(exitFailed, " failed"),
		fmt.Sprint(exitUsage, " wrong usage"),
	}
	if problems != "" {
		lines = append(lines, fmt.Sprint(exitProblems, " ", problems))
	}
	for _, b := range []struct {
		status int
		text   string
	}{{exitNoStore, "not a store"}, {exitLocked, "timed out waiting for a lock"}, {exitInterrupted, "interrupted"}} {
		if slices.Contains(besides, b.status) {
			lines = append(lines, fmt.Sprint(b.status, " ", b.text))
		}
	}
	return map[string]string{exitsKey: strings.Join(lines, "\n")}
}

// groups are the verbs by what they are for, as the help lists them. Others come last.
var groups = []struct{ title, verbs string }{
	{"Conversations", "append branch init ls meta new show tree watch"},
	{"In and out", "backup export files import migrate rollback"},
	{"Care", "archive check doctor du externalise repair unarchive"},
	{"Removing", "erase gc rm trash"},
}

func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(strings.Fields(g.verbs), cmd.Name()) {
				cmd.GroupID = g.title
			}
		}
	}
}

// readable is how many columns a text may take to be read easily.
const readable = 100

func (a *app) help(cmd *cobra.Command) string {
	columns := readable
	if n := a.width(); n > 0 {
		columns = min(n, readable)
	}
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, text)
		}
	}
	b.WriteString(filled(cmp.Or(cmd.Long, cmd.Short+"."), columns) + "\n")
	section("Usage", "  "+useLine(cmd))
	section("Examples", cmd.Example)
	for _, g := range cmd.Groups() {
		section(g.Title, listed(cmd, g.ID))
	}
	section(map[bool]string{true: "Others", false: "Verbs"}[len(cmd.Groups()) > 0], listed(cmd, ""))
	section("Flags", cmd.LocalFlags().FlagUsagesWrapped(columns))
	section("Flags of every verb", cmd.InheritedFlags().FlagUsagesWrapped(columns))
	section("Exit status", indented(cmd.Annotations[exitsKey]))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%q explains a verb.\n", cmd.CommandPath()+" VERB --help")
	}
	return b.String()
}

// useLine is how a command is called.
func useLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " VERB"
	}
	return cmd.UseLine()
}

// listed are the verbs of a group, one a line.
func listed(cmd *cobra.Command, group string) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.GroupID == group && !c.Hidden {
			fmt.Fprintf(&b, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// indented puts the texts of exit statuses under each other.
func indented(statuses string) string {
	var b strings.Builder
	for line := range strings.Lines(statuses) {
		status, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintf(&b, "  %-4s %s\n", status, text)
	}
	return b.String()
}

// paragraphs splits a text where lines are empty. Those with an indented line are to be kept as they are.
func paragraphs(text string, f func(paragraph string, asIs bool)) {
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if p = strings.Trim(p, "\n"); p != "" {
			f(p, strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") || strings.HasPrefix(p, "\t") || strings.Contains(p, "\n\t"))
		}
	}
}

// filled breaks the lines of a text anew.
func filled(text string, columns int) string {
	var out []string
	paragraphs(text, func(p string, asIs bool) {
		if asIs {
			out = append(out, p)
			return
		}
		var lines []string
		line := ""
		for _, word := range strings.Fields(p) {
			if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > columns {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		out = append(out, strings.Join(append(lines, line), "\n"))
	})
	return strings.Join(out, "\n\n")
}

func (a *app) helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "help [VERB…]",
		Short:       "Explain a verb",
		Example:     "  ctxtool help show\n  ctxtool help branch fork",
		Annotations: exits(""),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) (found []string, _ cobra.ShellCompDirective) {
			of, _, err := cmd.Root().Find(args)
			if err == nil {
				for _, c := range of.Commands() {
					if strings.HasPrefix(c.Name(), part) && !c.Hidden {
						found = append(found, c.Name()+"\t"+c.Short)
					}
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = needVerb(of, rest)
			}
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
