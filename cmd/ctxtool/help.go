package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/spf13/cobra"
)

// groups are the verbs by purpose, in the order of the help. Other verbs come last.
var groups = []struct{ title, verbs string }{
	{"Conversations", "append branch context grep init ls ls-files meta moment new ref search show diff log stats tree usage watch"},
	{"Import and export", "backup export files import mcp migrate mode mv peer remote restore rollback serve sync"},
	{"Maintenance", "archive check config doctor du externalise index repair unarchive"},
	{"Removal", "erase gc rm trash"},
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

// maxHelpColumns bounds the width of the help on a wide terminal.
const maxHelpColumns = 100

func (a *app) help(cmd *cobra.Command) string {
	columns := maxHelpColumns
	if n := a.out.Columns(); n > 0 {
		columns = min(n, maxHelpColumns)
	}
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, text)
		}
	}
	b.WriteString(plain.Wrap(cmp.Or(cmd.Long, cmd.Short+"."), columns) + "\n")
	section("Usage", "  "+useLine(cmd))
	section("Examples", cmd.Example)
	for _, g := range cmd.Groups() {
		section(g.Title, verbList(cmd, g.ID))
	}
	section(map[bool]string{true: "Other verbs", false: "Verbs"}[len(cmd.Groups()) > 0], verbList(cmd, ""))
	section("Flags", cmd.LocalFlags().FlagUsagesWrapped(columns))
	section("Global flags", cmd.InheritedFlags().FlagUsagesWrapped(columns))
	section("Exit status", statusList(cmd.Annotations[exitsKey]))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun %q for the help of a verb.\n", cmd.CommandPath()+" VERB --help")
	}
	return b.String()
}

// verbList lists the verbs of a group, one per line.
func verbList(cmd *cobra.Command, group string) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.GroupID == group && !c.Hidden {
			fmt.Fprintf(&b, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// statusList aligns the texts of exit statuses.
func statusList(statuses string) string {
	var b strings.Builder
	for line := range strings.Lines(statuses) {
		status, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintf(&b, "  %-4s %s\n", status, text)
	}
	return b.String()
}

func (a *app) helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "help [VERB…]",
		Short:       "Show the help of a verb",
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
