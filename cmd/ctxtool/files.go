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
	cmd := &cobra.Command{
		Use:   "files [CONTEXT…]",
		Short: "List every file that contexts need, blobs included",
		Long: `List the path of every file that contexts need, one per line, relative to the current folder:
their own files, the blobs they refer to, and the files of the store. Without CONTEXT, list those
of every context. The log is sealed first: its payloads become blobs, and its records become a
segment, which never changes.`,
		Example:           `  ctxtool files -z 7c2f | xargs -0 git add`,
		Annotations:       exits("", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE:              a.onStore(a.files),
	}
	cmd.Flags().BoolVarP(&a.nulls, "null", "z", false, "end each path with a zero byte instead of a line break")
	return cmd
}

func (a *app) files(ctx context.Context, s *ctxdir.Store, refs []string) error {
	ids, err := contextsOf(s, refs)
	if err != nil {
		return err
	}
	root := s.Info().Path
	listed := map[string]bool{} // contexts share blobs
	for _, id := range ids {
		err := withOpen(ctx, s, id, func(c *ctxdir.Context) error {
			for path, err := range c.Admin().Files(ctx) {
				if err != nil {
					return err
				}
				if listed[path] {
					continue
				}
				listed[path] = true
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
	if a.nulls {
		return a.printf("%s\x00", path)
	}
	return a.printf("%s\n", path)
}
