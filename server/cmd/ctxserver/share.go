package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/ctxdir/ctxdir/server/users"
	"github.com/spf13/cobra"
)

type shareRecord struct {
	Record  string `json:"record"`
	User    string `json:"user"`
	Project string `json:"project"`
	With    string `json:"with"`
}

// shareCmd is a verb with a user, a project and another user.
func (a *app) shareCmd(
	use, short, long, record, done string, do func(all *users.Users, cmd *cobra.Command, owner, project, with string) error,
) *cobra.Command {
	var project, with string
	cmd := &cobra.Command{
		Use: use + " NAME --project PATH --with NAME", Short: short, Long: long, Args: names(1), DisableFlagsInUseLine: true,
		Example: "  ctxserver user " + use + " ada --project /home/ada/harbour --with bob",
		RunE: func(cmd *cobra.Command, args []string) error {
			if project == "" || with == "" {
				return wrong("usage: %s", cmd.UseLine())
			}
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				if err := do(all, cmd, args[0], project, with); err != nil {
					return err
				}
				return a.print(shareRecord{record, args[0], project, with}, done, project, args[0], with)
			})
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "the contexts with the label project=`PATH`")
	cmd.Flags().StringVar(&with, "with", "", "the user `NAME` who may read them")
	return cmd
}

func (a *app) userShareCmd() *cobra.Command {
	return a.shareCmd("share", "Let another user read a project", `Let another user read a project of a user: contexts whose label
"project" is PATH, and no others.
The page of the reader shows them with the name of the owner; programs find the API below /shared/NAME.`,
		"shared", "Shared %s of %s with %s",
		func(all *users.Users, cmd *cobra.Command, owner, project, with string) error {
			return all.Share(cmd.Context(), owner, project, with)
		})
}

func (a *app) userUnshareCmd() *cobra.Command {
	return a.shareCmd("unshare", "End a share", `End a share with the next request. Followers end within ten seconds.`,
		"unshared", "%s of %s is no longer shared with %s",
		func(all *users.Users, cmd *cobra.Command, owner, project, with string) error {
			return all.Unshare(cmd.Context(), owner, project, with)
		})
}

func (a *app) userSharesCmd() *cobra.Command {
	return &cobra.Command{
		Use: "shares NAME", Short: "List what a user shares, and what is shared with the user", Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				given, err := all.Given(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				u, err := all.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				var records []shareRecord
				for _, g := range given {
					records = append(records, shareRecord{"share", u.Name, g.Project, g.With})
				}
				for _, s := range u.Shared {
					records = append(records, shareRecord{"share", s.Name, s.Project, u.Name})
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				if !a.json {
					fmt.Fprintln(w, "OF\tWITH\tPROJECT")
				}
				for _, r := range records {
					if a.json {
						err = a.print(r, "")
					} else {
						_, err = fmt.Fprintf(w, "%s\t%s\t%s\n", r.User, r.With, r.Project)
					}
					if err != nil {
						return err
					}
				}
				return w.Flush()
			})
		},
	}
}
