package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type invitationRecord struct {
	Record    string    `json:"record"`
	ID        uuid.UUID `json:"id"` // of the user who comes from it
	URL       string    `json:"url,omitempty"`
	Secret    string    `json:"secret,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`

	// Of the token that comes from it.
	Scope   users.Scope `json:"scope,omitempty"`
	Project string      `json:"project,omitempty"`
	Lasts   float64     `json:"lasts,omitempty"` // in seconds
}

func invitationRecordOf(u *users.User) invitationRecord {
	i := u.Invitation
	return invitationRecord{
		Record: "invitation", ID: u.ID, ExpiresAt: i.ExpiresAt, Scope: i.Scope, Project: i.Project, Lasts: i.Lasts.Seconds(),
	}
}

func (a *app) userInviteCmd() *cobra.Command {
	expires := day(7 * 24 * time.Hour)
	var o users.TokenOptions
	var limits tokenLimits
	var lasts day
	cmd := &cobra.Command{
		Use: "invite", Short: "Make a link with which somebody becomes a user, and print it once",
		Long: `Make a link, and print it. Whoever opens it first chooses a name, and gets a user and a token. The
secret is behind the # of the link, which browsers send to nobody; the server keeps only what tells whether it is right.

With --read, --project and --token-expires, the token has these limits: see user token.`,
		Example: `  ctxserver user invite --expires 2d
  ctxserver user invite --project /harbour --token-expires 90d`,
		Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := limits.apply(cmd, &o, lasts); err != nil {
				return err
			}
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				secret, u, err := all.Invite(cmd.Context(), time.Duration(expires), o)
				if err != nil {
					return err
				}
				link := a.config.base() + "/#invite=" + secret
				r := invitationRecordOf(&u)
				r.URL, r.Secret = link, secret
				return a.print(r, "%s", link)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&expires, "expires", "end the invitation after `DURATION`, such as 2d")
	limits.flags(flags, &o)
	flags.Var(&lasts, "token-expires", "end the token after `DURATION`, such as 90d")
	return cmd
}

// base is how people reach the server, as far as the settings tell.
func (c *config) base() string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}
	if c.Cert != "" {
		return "https://" + c.Listen
	}
	return "http://" + c.Listen
}

func (a *app) userInvitesCmd() *cobra.Command {
	return &cobra.Command{
		Use: "invites", Short: "List the invitations that nobody has accepted", Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				found, err := all.Invitations(cmd.Context())
				if err != nil || a.json {
					for i := 0; i < len(found) && err == nil; i++ {
						err = a.print(invitationRecordOf(&found[i]), "")
					}
					return err
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tEXPIRES\tSCOPE\tPROJECT")
				for _, u := range found {
					i := u.Invitation
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.ID, i.ExpiresAt.Format(time.DateTime), i.Scope, i.Project)
				}
				return w.Flush()
			})
		},
	}
}

func (a *app) userUninviteCmd() *cobra.Command {
	return &cobra.Command{
		Use: "uninvite ID", Short: "End an invitation that nobody has accepted", Args: names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return wrong("%q is not the id of an invitation; see ctxserver user invites", args[0])
			}
			return a.withUsers(cmd.Context(), func(all *users.Users) error {
				if err := all.Uninvite(cmd.Context(), id); err != nil {
					return fmt.Errorf("invitation %s: %w", id, users.ErrNotFound)
				}
				return a.print(invitationRecord{Record: "uninvited", ID: id}, "Ended %s", id)
			})
		},
	}
}
