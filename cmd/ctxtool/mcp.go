package main

import (
	"errors"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/mcp"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/spf13/cobra"
)

func (a *app) mcpCmd() *cobra.Command {
	var o mcp.Options
	var follow bool
	cmd := &cobra.Command{
		Use:   "mcp [--write] [--follow] [--project PROJECT]",
		Short: "Serve the store to agents by the Model Context Protocol",
		Long: `Serve the store to an agent on stdin and stdout, by the Model Context Protocol (MCP): it recalls
what was said and done before, searches and reads it. With --write it can also remember something and fork a
branch. Nothing can be removed. With --follow, it also imports what other tools of this user wrote, from where
they keep it, and goes on while the agent is connected. A store that is missing is created, so that the server
always begins.

Answers come from the project in the folder PROJECT, the current one by default, unless the agent asks
for all. A context with the label "private" is not there for it. $CTXDIR_SESSION is the id of the
conversation that asks, which is left out; without it, that is what changed last in the project, within
the last ten minutes.`,
		Example:     "  ctxtool mcp </dev/null\n  ctxtool mcp --write --project ~/walk </dev/null",
		Annotations: exits("", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Project == "" {
				o.Project, _ = os.Getwd() // without one, every project counts
			}
			o.Project = projectPath(o.Project)
			o.Repository = importer.RepositoryName(reference.Repository(cmd.Context(), o.Project))
			o.Asking, o.Version = a.env("CTXDIR_SESSION"), version().Version
			var opts []ctxdir.Options
			if !o.Write {
				opts = append(opts, ctxdir.Options{ReadOnly: true})
			}
			s, err := a.open(opts...)
			if errors.Is(err, ctxdir.ErrNoStore) {
				if s, err = a.openOrInit(); err == nil {
					err = s.Close()
				}
				if err == nil {
					s, err = a.open(opts...)
				}
			}
			if err != nil {
				return err
			}
			if follow {
				var stop func()
				o.Imported, stop = a.followBeside(cmd.Context())
				defer stop()
			}
			server := mcp.New(s, o)
			return a.closeStore(cmd.Context(), s, closeAfter(server.Close, server.Run(cmd.Context(), a.stdin, flushed{a.out})))
		},
	}
	cmd.Flags().BoolVar(&o.Write, "write", false, "let the agent remember something and fork branches")
	cmd.Flags().BoolVar(&follow, "follow", false, "import what other tools write, too, until the agent leaves")
	cmd.Flags().StringVar(&o.Project, "project", "", "answer from conversations of the project in the folder `PROJECT`")
	return cmd
}

// flushed writes at once.
type flushed struct{ *term.Output }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.Output.Write(b)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}
