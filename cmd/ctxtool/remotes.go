package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

type remoteRecord struct {
	Record string            `json:"record"`
	Name   string            `json:"name"`
	Peer   string            `json:"peer"`
	Map    map[string]string `json:"map,omitempty"`
}

func (a *app) remoteCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remote",
		Short: "Name the stores that sync brings together with this one",
		Long: `Name the stores that sync brings together with this one. The names are settings of the store, in
ctxdir.json. Without --to, sync goes through all of them.`,
		Example:     "  ctxtool remote add desk ssh://ada@desk/home/ada/.ctxdir\n  ctxtool remote ls",
		Annotations: exits("", ofStores...),
		RunE:        needVerb,
	}
	cmd.AddCommand(a.remoteAddCmd(), a.remoteLsCmd(), a.remoteRmCmd())
	return cmd
}

func (a *app) remoteAddCmd() *cobra.Command {
	var paths []string
	cmd := &cobra.Command{
		Use:   "add NAME PEER",
		Short: "Name another store",
		Long: `Name another store. PEER is what sync takes with --to. A name that is there already gets the new PEER.

With --map, FROM is a folder of the other machine, and TO is what it is on this one. Then --project
finds conversations of the other machine by the folder here, and "ctxtool export" writes this folder
into sessions of Claude Code and Codex. Stored messages and labels do not change.`,
		Example:     "  ctxtool remote add disk ~/copy\n  ctxtool remote add desk ssh://desk/home/ada/.ctxdir --map /home/ada=/Users/ada",
		Annotations: exits("", ofStores...),
		Args:        between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.ContainsAny(args[0], "/:#") || strings.HasPrefix(args[0], "-") {
				return usage(cmd, "%q cannot be a name: it would look like a folder or a URL", args[0])
			}
			r := ctxdir.Remote{Name: args[0], Peer: args[1], Map: map[string]string{}}
			for _, p := range paths {
				from, to, ok := strings.Cut(p, "=")
				if !ok || from == "" || to == "" {
					return usage(cmd, "--map %s: expected FROM=TO, two folders", p)
				}
				r.Map[from] = to
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				err := s.Configure(cmd.Context(), func(set *ctxdir.Settings) error {
					set.Remotes = append(slices.DeleteFunc(set.Remotes, named(args[0])), r)
					return nil
				})
				if err != nil {
					return err
				}
				return a.result(remoteRecord{"remote", r.Name, r.Peer, r.Map}, "%s", remoteText(&r))
			})
		},
	}
	cmd.Flags().StringArrayVar(&paths, "map", nil, "`FROM=TO`: the folder FROM of the other machine is TO here; can be repeated")
	return cmd
}

// remoteText describes a remote.
func remoteText(r *ctxdir.Remote) string {
	text := r.Name + "  " + r.Peer
	for _, from := range slices.Sorted(maps.Keys(r.Map)) {
		text += "  " + from + "=" + r.Map[from]
	}
	return text
}

func named(name string) func(ctxdir.Remote) bool {
	return func(r ctxdir.Remote) bool { return r.Name == name }
}

func (a *app) remoteLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "ls",
		Short:       "List the named stores",
		Long:        "List the named stores.",
		Example:     "  ctxtool remote ls",
		Annotations: exits("", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				set, err := s.Settings()
				for _, r := range set.Remotes {
					if err == nil {
						err = a.result(remoteRecord{"remote", r.Name, r.Peer, r.Map}, "%s", remoteText(&r))
					}
				}
				return err
			})
		},
	}
}

func (a *app) remoteRmCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "rm NAME",
		Short:       "Forget the name of another store",
		Long:        "Forget the name of another store. The store itself stays as it is.",
		Example:     "  ctxtool remote add disk ~/copy\n  ctxtool remote rm disk",
		Annotations: exits("", ofStores...),
		Args:        between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				return s.Configure(cmd.Context(), func(set *ctxdir.Settings) error {
					left := slices.DeleteFunc(slices.Clone(set.Remotes), named(args[0]))
					if len(left) == len(set.Remotes) {
						return fmt.Errorf("%w: no remote is named %q", ctxdir.ErrNotExist, args[0])
					}
					set.Remotes = left
					return nil
				})
			})
		},
	}
}
