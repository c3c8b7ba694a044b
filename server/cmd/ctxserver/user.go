package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type userRecord struct {
	Record    string    `json:"record"`
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	Tokens    int       `json:"tokens"`
	Quota     int64     `json:"quota,omitempty"` // in bytes
}

func userRecordOf(record string, u users.User) userRecord {
	return userRecord{record, u.ID, u.Name, u.CreatedAt, len(u.Tokens), u.Quota}
}

type tokenRecord struct {
	Record    string      `json:"record"`
	User      string      `json:"user"`
	ID        string      `json:"id"`
	Token     string      `json:"token,omitempty"` // only when it is made
	Scope     users.Scope `json:"scope"`
	Project   string      `json:"project,omitempty"`
	Label     string      `json:"label,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	ExpiresAt *time.Time  `json:"expires_at,omitempty"`
}

func tokenRecordOf(name, token string, t users.Token) tokenRecord {
	return tokenRecord{"token", name, t.ID, token, t.Scope, t.Project, t.Label, t.CreatedAt, t.ExpiresAt}
}

func (a *app) userCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Add, list and remove users, and make their tokens"}
	cmd.AddCommand(a.userAddCmd(), a.userLsCmd(), a.userRmCmd(), a.userRestoreCmd(), a.userTokenCmd(), a.userTokensCmd(), a.userRevokeCmd(),
		a.userQuotaCmd(), a.userEraseCmd(), a.userInviteCmd(), a.userInvitesCmd(), a.userUninviteCmd(),
		a.userShareCmd(), a.userUnshareCmd(), a.userSharesCmd(), a.userUsageCmd())
	return cmd
}

func names(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return wrong("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

func (a *app) userAddCmd() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "Add a user", Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				u, err := all.Add(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(userRecordOf("user", u), "Added %s. Make a token with: ctxserver user token %s", u.Name, u.Name)
			})
		},
	}
}

func (a *app) userLsCmd() *cobra.Command {
	var removed bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the users", Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				list := all.List
				if removed {
					list = all.Removed
				}
				found, err := list(cmd.Context())
				if err != nil || a.json {
					for i := 0; i < len(found) && err == nil; i++ {
						err = a.print(userRecordOf("user", found[i]), "")
					}
					return err
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tADDED\tTOKENS\tQUOTA")
				for _, u := range found {
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", u.Name, u.CreatedAt.Format(time.DateOnly), len(u.Tokens), quota(u.Quota))
				}
				return w.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&removed, "removed", false, "list removed users instead")
	return cmd
}

func (a *app) userRmCmd() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a user; user restore undoes it",
		Long: `Remove a user. The tokens of the user count no more. The conversations stay until user erase
deletes them; user restore brings user and conversations back.`,
		Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				u, err := all.Remove(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(userRecordOf("removed", u), "Removed %s. Undo with: ctxserver user restore %s", u.Name, u.Name)
			})
		},
	}
}

func (a *app) userRestoreCmd() *cobra.Command {
	return &cobra.Command{
		Use: "restore NAME", Short: "Bring a removed user back", Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				u, err := all.Restore(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(userRecordOf("restored", u), "Restored %s", u.Name)
			})
		},
	}
}

func (a *app) userTokenCmd() *cobra.Command {
	var o users.TokenOptions
	var limits tokenLimits
	var expires day
	cmd := &cobra.Command{
		Use: "token NAME", Short: "Make a token of a user, and print it once",
		Long: `Make a token of a user, and print it. It is shown this once: the server keeps only what tells whether a token is right.

With --project, the token sees only contexts whose label "project" is PATH, and what it creates has that label.`,
		Example: `  ctxserver user token ada --label laptop --expires 90d
  ctxserver user token ada --read --project /home/ada/harbour`,
		Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := limits.apply(cmd, &o, expires); err != nil {
				return err
			}
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				token, t, err := all.NewToken(cmd.Context(), args[0], o)
				if err != nil {
					return err
				}
				return a.print(tokenRecordOf(args[0], token, t), "%s", token)
			})
		},
	}
	flags := cmd.Flags()
	limits.flags(flags, &o)
	flags.StringVar(&o.Label, "label", "", "note what the token is for: `TEXT`")
	flags.Var(&expires, "expires", "end the token after `DURATION`, such as 90d")
	return cmd
}

// tokenLimits are flags that tokens and invitations have.
type tokenLimits struct{ read bool }

func (l *tokenLimits) flags(flags *pflag.FlagSet, o *users.TokenOptions) {
	flags.BoolVar(&l.read, "read", false, "let the token change nothing")
	flags.StringVar(&o.Project, "project", "", "limit the token to contexts with the label project=`PATH`")
}

func (l *tokenLimits) apply(cmd *cobra.Command, o *users.TokenOptions, expires day) error {
	if cmd.Flags().Changed("project") && o.Project == "" {
		return wrong("--project is empty")
	}
	if o.Expires = time.Duration(expires); l.read {
		o.Scope = users.Read
	}
	return nil
}

func (a *app) userTokensCmd() *cobra.Command {
	return &cobra.Command{
		Use: "tokens NAME", Short: "List the tokens of a user", Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				u, err := all.Find(cmd.Context(), args[0])
				if err != nil || a.json {
					for i := 0; i < len(u.Tokens) && err == nil; i++ {
						err = a.print(tokenRecordOf(u.Name, "", u.Tokens[i]), "")
					}
					return err
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tSCOPE\tADDED\tEXPIRES\tPROJECT\tLABEL")
				for _, t := range u.Tokens {
					expires := "never"
					if t.ExpiresAt != nil {
						expires = t.ExpiresAt.Format(time.DateOnly)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Scope, t.CreatedAt.Format(time.DateOnly), expires, t.Project, t.Label)
				}
				return w.Flush()
			})
		},
	}
}

func (a *app) userRevokeCmd() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME ID", Short: "End a token of a user", Args: names(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				if err := all.Revoke(cmd.Context(), args[0], args[1]); err != nil {
					return err
				}
				return a.print(map[string]string{"record": "revoked", "user": args[0], "id": args[1]}, "Revoked %s", args[1])
			})
		},
	}
}
