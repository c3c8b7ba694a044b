package main

import (
	"context"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// completing opens the store in use for what a shell asks about while a line is typed. It finds nothing rather than to say what is wrong.
func (a *app) completing(
	part string,
	find func(s *ctxdir.Store, offer func(word, description string)) error,
) ([]string, cobra.ShellCompDirective) {
	s, err := a.open(ctxdir.WithReadOnly())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	var found []string
	_ = find(s, func(word, description string) {
		if strings.HasPrefix(word, part) && oneLine(word) == word { // the shell writes it to the terminal
			found = append(found, word+"\t"+oneLine(description))
		}
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts offers the ids that an argument may begin with.
func (a *app) completeContexts(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completing(part, func(s *ctxdir.Store, offer func(word, description string)) error {
			for sum, err := range s.List(cmd.Context()) {
				if err != nil {
					return err
				}
				offer(completed(sum.ID, part), sum.Title)
			}
			return nil
		})
	}
}

// completed is what a line that begins an id with part goes on to: the id, or the end of it that lists show.
func completed(id uuid.UUID, part string) string {
	if text := id.String(); strings.HasPrefix(text, part) {
		return text
	}
	return ending(id)
}

// completeBranches offers contexts for the first argument and the branches of that context for the second one.
func (a *app) completeBranches(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return a.branchesOf(cmd.Context(), args[0], part)
	}
	return a.completeContexts(1)(cmd, args, part)
}

func (a *app) branchesOf(ctx context.Context, ref, part string) ([]string, cobra.ShellCompDirective) {
	return a.completing(part, func(s *ctxdir.Store, offer func(word, description string)) error {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		return withOpen(ctx, s, id, func(c *ctxdir.Context) error {
			branches, err := c.Branches(ctx)
			for _, b := range branches {
				description := plural(int(b.Messages), "message", "messages")
				if b.Active {
					description += ", active"
				}
				offer(b.Name, description)
			}
			return err
		})
	})
}

// branchFlag gives a verb, whose first argument is a context, a flag that names a branch of it.
func (a *app) branchFlag(cmd *cobra.Command, into *string, name, text string) {
	cmd.Flags().StringVar(into, name, "", text)
	_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.branchesOf(cmd.Context(), args[0], part)
	})
}

// completeItems offers what lies in the trash.
func (a *app) completeItems(cmd *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
	return a.completing(part, func(s *ctxdir.Store, offer func(word, description string)) error {
		for x, err := range s.Trash(cmd.Context()) {
			if err != nil {
				return err
			}
			offer(completed(x.ID, part), x.Kind+", "+x.Reason)
		}
		return nil
	})
}
