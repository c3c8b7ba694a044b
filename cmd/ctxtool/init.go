package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/workspace"
	"github.com/spf13/cobra"
)

type storeRecord struct {
	Record string `json:"record"`
	Path   string `json:"path"`
	Format string `json:"format"`
	ID     string `json:"id"`
}

func (a *app) initCmd() *cobra.Command {
	var threshold int64
	var forProject bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a store in DIR, or in ./.ctxdir",
		Long: `Create a store in DIR. Without DIR, use the folder that --store or $CTXDIR_STORE names, else
./.ctxdir, which ctxtool then finds from this folder and every folder below it. An existing store stays
unchanged. --threshold 0 moves all texts to blobs, -1 none.

--workspace creates the workspace of the project in DIR, or in the current folder: the store
DIR/.ctxdir, with instructions.md, the text at the beginning of every assembled context, and a
.gitignore that keeps conversations out of the repository. Everything stays in this folder: nothing
is sent anywhere. "ctxtool restore --from STORE --project DIR" copies the conversations that another store
has of the project.`,
		Example:     "  ctxtool init\n  ctxtool init ~/conversations --threshold 4096\n  ctxtool init --workspace ~/walk",
		Annotations: exits("", ofNewStore...),
		Args:        between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "" {
				return usage(cmd, "DIR must not be empty")
			}
			var opts []ctxdir.Options
			if cmd.Flags().Changed("threshold") {
				opts = append(opts, ctxdir.Options{TextThreshold: cmp.Or(threshold, 1)}) // no text is empty
			}
			if forProject {
				return a.initWorkspace(cmd, args, opts)
			}
			dir := workspace.Folder
			switch {
			case len(args) == 1:
				dir = args[0]
			case a.storeDir != "" || a.env("CTXDIR_STORE") != "":
				var err error
				if dir, err = a.storePath(); err != nil {
					return err
				}
			}
			exists := isStore(dir)
			s, err := ctxdir.Init(dir, a.options(opts...)...)
			return a.initialised(cmd.Context(), s, exists, err)
		},
	}
	cmd.Flags().Int64Var(&threshold, "threshold", defaultThreshold, "move texts of at least `N` bytes to blobs")
	cmd.Flags().BoolVar(&forProject, "workspace", false, "create the workspace of a project")
	return cmd
}

func (a *app) initWorkspace(cmd *cobra.Command, args []string, opts []ctxdir.Options) error {
	if a.storeDir != "" {
		return usage(cmd, "--workspace and --store cannot be used together")
	}
	project := "."
	if len(args) == 1 {
		project = args[0]
	}
	exists := isStore(filepath.Join(project, workspace.Folder))
	s, err := workspace.Init(cmd.Context(), project, a.options(opts...)...)
	return a.initialised(cmd.Context(), s, exists, err)
}

// askMode asks a person on a terminal who else may hold the conversations of a new store. Nobody else is asked.
func (a *app) askMode(ctx context.Context, s *ctxdir.Store) error {
	if a.json || !a.asksOnTerminal() {
		return nil
	}
	mode := ctxdir.StorageLocal
	server, err := a.ask(ctx, "May a server hold these conversations, too? Change it at any time with: ctxtool mode.")
	if server {
		mode = ctxdir.StorageServer
	}
	if err == nil {
		err = setModes(ctx, s, []ctxdir.Mode{{Mode: mode}})
	}
	return err
}

// initialised prints a store that was created, or was there.
func (a *app) initialised(ctx context.Context, s *ctxdir.Store, exists bool, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	if !exists {
		if err := a.askMode(ctx, s); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(s.Info().Path)
	if err != nil {
		return err
	}
	if exists {
		a.note("%s is already a store", path)
	}
	if !a.json {
		return a.printf("%s\n", path)
	}
	format, err := formatOf(path)
	if err != nil {
		return err
	}
	return a.record(storeRecord{"store", path, format, s.Info().ID.String()})
}

// isStore reports whether a folder is already a store.
func isStore(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, "ctxdir.json"))
	return err == nil && info.Mode().IsRegular()
}
