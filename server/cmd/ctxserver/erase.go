package main

import (
	"strings"

	"github.com/ctxdir/ctxdir/server/users"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func quota(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return humanize.Bytes(uint64(bytes))
}

func (a *app) userQuotaCmd() *cobra.Command {
	return &cobra.Command{
		Use: "quota NAME SIZE", Short: "Bound how much room a user's conversations may take",
		Long: `Bound how much room the conversations of a user may take, such as 10GB; none for no bound. Whoever has more can still
read, export and remove, but adds nothing.`,
		Args: names(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var n uint64
			if args[1] != "none" {
				var err error
				if n, err = humanize.ParseBytes(args[1]); err != nil || n == 0 || n > 1<<62 || strings.HasPrefix(args[1], "-") {
					return wrong("quota %q: expected a size such as 10GB, or none", args[1])
				}
			}
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				if err := all.SetQuota(cmd.Context(), args[0], int64(n)); err != nil {
					return err
				}
				if n == 0 {
					return a.print(map[string]any{"record": "quota", "user": args[0]}, "%s has no quota", args[0])
				}
				return a.print(map[string]any{"record": "quota", "user": args[0], "quota": n}, "%s has a quota of %s", args[0], quota(int64(n)))
			})
		},
	}
}

func (a *app) userEraseCmd() *cobra.Command {
	return &cobra.Command{
		Use: "erase NAME", Short: "Delete a removed user for good",
		Long: `Delete a removed user for good, with all conversations. In a database the user's keys are deleted too, without which
nobody can read what remains in backups and in the database's log.`,
		Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				u, err := all.Erase(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(userRecordOf("erased", u), "Erased %s", u.Name)
			})
		},
	}
}
