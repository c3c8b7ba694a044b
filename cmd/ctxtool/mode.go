package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type modeRecord struct {
	Record  string `json:"record"`
	Context string `json:"context,omitempty"`
	Project string `json:"project,omitempty"`
	Mode    string `json:"mode"`
	Decided bool   `json:"decided"` // by somebody
}

type holderRecord struct {
	Record   string `json:"record"`
	Remote   string `json:"remote"`
	Contexts int    `json:"contexts"` // as of the last sync
	Only     int    `json:"only"`     // that are not here
}

func (a *app) modeCmd() *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:   "mode [CONTEXT | --project PROJECT] [local | server]",
		Short: "Decide who else may hold conversations",
		Long: `Show or set the storage mode of the store, of a project or of a context. That of a context counts
before that of its project, and that before the mode of the store. An empty mode forgets a decision.

  local   the default. Conversations stay on this machine: "ctxtool sync" pushes
          none to a server or another machine, and still copies to folders
  server  a server may hold conversations, too. Programs go on to write to this
          folder, also offline, and "ctxtool sync" brings both together

Until somebody decides, sync goes where it is told to. "ctxtool mode switch" moves what is there.`,
		Example:           "  ctxtool mode\n  ctxtool mode local\n  ctxtool mode --project ~/walk server\n  ctxtool mode 7c2f local",
		Annotations:       exits("", ofStores...),
		Args:              between(0, 2),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := ctxdir.Mode{Project: projectPath(project)}
			ref, set := "", false
			if n := len(args); n > 0 && slices.Contains(append(modes, ""), args[n-1]) {
				m.Mode, set, args = args[n-1], true, args[:n-1]
			}
			if len(args) > 0 {
				ref = args[0]
			}
			switch {
			case len(args) > 1:
				return usage(cmd, "%q is not one of: local, server", args[1])
			case ref != "" && project != "":
				return usage(cmd, "CONTEXT and --project cannot be used together")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				if ref != "" {
					id, err := a.heldContext(s, ref)
					if err != nil {
						return err
					}
					m.Context = id
				}
				if set {
					if err := setModes(cmd.Context(), s, []ctxdir.Mode{m}); err != nil {
						return err
					}
				}
				return a.showModes(cmd.Context(), s, m, !set)
			})
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "the mode of the project in the folder `PROJECT`")
	cmd.AddCommand(a.modeSwitchCmd())
	return cmd
}

// showModes shows the mode of a context or a project, or that of the store with all others.
func (a *app) showModes(ctx context.Context, s *ctxdir.Store, of ctxdir.Mode, all bool) error {
	set, err := s.Settings()
	if err != nil {
		return err
	}
	switch {
	case of.Context != uuid.Nil:
		var labels map[string]string
		err := s.Use(ctx, of.Context, func(c *ctxdir.Context) error {
			labels = c.Metadata().Labels
			return nil
		})
		if err != nil && !errors.Is(err, ctxdir.ErrNotExist) {
			return err
		}
		of.Mode = set.ModeOf(of.Context, labels)
		return a.showMode(of)
	case of.Project != "":
		of.Mode = set.ModeOf(uuid.Nil, map[string]string{"project": of.Project})
		return a.showMode(of)
	}
	if err := a.showMode(ctxdir.Mode{Mode: set.StorageMode}); err != nil || !all {
		return err
	}
	for _, m := range set.Modes {
		if err := a.showMode(m); err != nil {
			return err
		}
	}
	return a.showHolders(s, &set)
}

func (a *app) showMode(m ctxdir.Mode) error {
	r := modeRecord{"mode", "", m.Project, cmp.Or(m.Mode, ctxdir.StorageLocal), m.Mode != ""}
	what := "this store"
	switch {
	case m.Context != uuid.Nil:
		r.Context = m.Context.String()
		what = "context " + r.Context
	case m.Project != "":
		what = "project " + plain.OneLine(m.Project)
	}
	if m.Mode == "" {
		what += ", not decided yet"
	}
	return a.result(r, "%-6s  %s", r.Mode, what)
}

// showHolders says which other stores hold contexts, as of the last sync.
func (a *app) showHolders(s *ctxdir.Store, set *ctxdir.Settings) error {
	for _, r := range set.Remotes {
		if r.Store == uuid.Nil {
			continue
		}
		held, err := replica.HeldBy(replica.NewFolder(s), r.Store)
		if err != nil {
			return err
		}
		text := plain.Count(held.Contexts, "context")
		if n := len(held.Away); n > 0 {
			text += fmt.Sprintf(", %d of them only there", n)
		}
		if err := a.result(holderRecord{"holder", r.Name, held.Contexts, len(held.Away)}, "%s holds %s", r.Name, text); err != nil {
			return err
		}
	}
	return nil
}
