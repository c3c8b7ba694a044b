package main

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/meter"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

type usageRecord struct {
	Record string `json:"record"`
	User   string `json:"user"`
	meter.Day
}

func (a *app) userUsageCmd() *cobra.Command {
	return &cobra.Command{
		Use: "usage NAME", Short: "Show what a user asked the model in local mode, by day",
		Long: `Show how many requests a user made in local mode, and their tokens, by day in UTC. The server keeps no
more of them: neither text, nor the conversations that they belong to.`,
		Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsage(cmd.Context(), func(all *users.Users, log meter.Log) error {
				u, err := all.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				rows, err := log.List(cmd.Context(), u.ID)
				if err != nil {
					return err
				}
				return a.printUsage(u.Name, meter.Days(rows))
			})
		},
	}
}

func (a *app) printUsage(name string, days []meter.Day) error {
	if a.json {
		for _, d := range days {
			if err := a.print(usageRecord{"usage", name, d}, ""); err != nil {
				return err
			}
		}
		return nil
	}
	const line = "%-10s  %10s  %15s  %15s\n"
	_, err := fmt.Fprintf(a.stdout, line, "DAY", "REQUESTS", "PROMPT TOKENS", "ANSWER TOKENS")
	for _, d := range days {
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, line, d.Date, humanize.Comma(d.Requests), humanize.Comma(d.Prompt), humanize.Comma(d.Answers))
		}
	}
	return err
}

// withUsage runs f with the users and the log of what they asked.
func (a *app) withUsage(ctx context.Context, f func(all *users.Users, log meter.Log) error) error {
	if a.config.DB == "" {
		return a.withUsers(ctx, func(all *users.Users) error { return f(all, server.Folders(a.config.Dir).Usage()) })
	}
	return a.withDatabase(ctx, nil, func(d *server.Database) error { return f(d.Users(), d.Usage()) })
}
