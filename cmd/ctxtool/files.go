package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

type fileRecord struct {
	Record string `json:"record"`
	Path   string `json:"path"`
}

func (a *app) filesCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "files CONTEXT…",
		Short: "List every file that contexts need, blobs included",
		Long: `List the path of every file that is needed to read the contexts, one a line, relative to the current folder: those of the
contexts, the blobs they refer to, and the store's own. What journals alone hold is brought into files first.`,
		Example:           `  git add $(ctxtool files 7c2f)`,
		Annotations:       exits("", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error { return a.files(cmd.Context(), s, args) })
		},
	}
}

func (a *app) files(ctx context.Context, s *ctxdir.Store, refs []string) error {
	ids, err := contextsOf(s, refs)
	if err != nil {
		return err
	}
	root := s.Info().Path
	told := map[string]bool{} // contexts share blobs
	for _, id := range ids {
		err := withOpen(ctx, s, id, func(c *ctxdir.Context) error {
			for path, err := range c.Files(ctx) {
				if err != nil {
					return err
				}
				if told[path] {
					continue
				}
				told[path] = true
				if err := a.file(filepath.Join(root, filepath.FromSlash(path))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) file(path string) error {
	if here, err := os.Getwd(); err == nil {
		if abs, err := filepath.Abs(path); err == nil {
			if rel, err := filepath.Rel(here, abs); err == nil {
				path = rel
			}
		}
	}
	if a.json {
		return a.record(fileRecord{"file", path})
	}
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return a.printf("%s\n", path)
}
