package main

import (
	"context"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// complete answers a shell that completes a command line from the store in use. On an error it offers nothing.
func (a *app) complete(
	part string,
	find func(s *ctxdir.Store, offer func(word, description string)) error,
) ([]string, cobra.ShellCompDirective) {
	s, err := a.open(ctxdir.Options{ReadOnly: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	var found []string
	_ = find(s, func(word, description string) {
		if strings.HasPrefix(word, part) && plain.OneLine(word) == word { // the shell writes it to the terminal
			found = append(found, word+"\t"+plain.OneLine(description))
		}
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts offers context ids for the first limit arguments; a negative limit is none.
func (a *app) completeContexts(limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		if limit >= 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.complete(part, func(s *ctxdir.Store, offer func(word, description string)) error {
			short := shortIDsIn(s)
			for sum, err := range s.List(cmd.Context(), ctxdir.ListOptions{}) {
				if err != nil {
					return err
				}
				offer(completeID(sum.ID, part, short), sum.Title)
			}
			return nil
		})
	}
}

// completeID is what an id completes to: what lists show, the whole id if part is longer, or the end of the id.
func completeID(id uuid.UUID, part string, short shortIDs) string {
	text := id.String()
	switch {
	case strings.HasPrefix(short.of(id), part):
		return short.of(id)
	case strings.HasPrefix(text, part):
		return text
	}
	return endOf(id)
}

// completeBranches offers contexts for the first argument, and branches of that context for the second.
func (a *app) completeBranches(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return a.branchesOf(cmd.Context(), args[0], part)
	}
	return a.completeContexts(1)(cmd, args, part)
}

func (a *app) branchesOf(ctx context.Context, ref, part string) ([]string, cobra.ShellCompDirective) {
	return a.complete(part, func(s *ctxdir.Store, offer func(word, description string)) error {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		return withOpen(ctx, s, id, func(c *ctxdir.Context) error {
			branches, err := c.Branches(ctx)
			for _, b := range branches {
				description := plain.Count(b.Messages, "message")
				if b.Active {
					description += ", active"
				}
				offer(b.Name, description)
			}
			return err
		})
	})
}

// branchFlag adds a flag that names a branch of the context in the first argument.
func (a *app) branchFlag(cmd *cobra.Command, into *string, name, text string) {
	cmd.Flags().StringVar(into, name, "", text)
	_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.branchesOf(cmd.Context(), args[0], part)
	})
}

// completeItems offers the items in the trash.
func (a *app) completeItems(cmd *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
	return a.complete(part, func(s *ctxdir.Store, offer func(word, description string)) error {
		for x, err := range s.Trash(cmd.Context()) {
			if err != nil {
				return err
			}
			offer(completeID(x.ID, part, shortIDs{x.ID: endOf(x.ID)}), string(x.Kind)+", "+x.Reason)
		}
		return nil
	})
}
