package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type trashedRecord struct {
	Record  string `json:"record"`
	Context string `json:"context"`
	Path    string `json:"path"` // in the store
	Bytes   int64  `json:"bytes"`
	Reason  string `json:"reason"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func (a *app) rmCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "rm CONTEXT…",
		Short:             "Move whole contexts to the store's trash",
		Long:              `Move whole contexts to the store's trash. "ctxtool trash restore" brings them back, until they have been there for a week.`,
		Example:           "  ctxtool rm 7c2f --dry-run\n  ctxtool rm 7c2f",
		Annotations:       exits("some contexts were not removed", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				return a.remove(cmd.Context(), s, args)
			})
		},
	}
	a.dryRunFlag(cmd)
	return cmd
}

// remove finds every context before it removes the first, so that a slip of the pen removes none.
func (a *app) remove(ctx context.Context, s *ctxdir.Store, refs []string) error {
	var ids []uuid.UUID
	for _, ref := range refs {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	failed := 0
	for _, id := range ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t, err := trashed(ctx, s, id, a.dryRun)
		switch {
		case err != nil && (len(ids) == 1 || ctx.Err() != nil):
			return err
		case err != nil:
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
		case a.json:
			err = a.record(trashedRecord{"trashed", id.String(), t.Path, t.Bytes, t.Reason, a.dryRun})
		default:
			err = a.printf("%s  %s  -> %s\n", id, humanSize(t.Bytes), t.Path)
		}
		if readerLeft(err) {
			return err
		}
	}
	if failed > 0 {
		return &problemsError{text: fmt.Sprintf("%d of %d contexts were not removed", failed, len(ids))}
	}
	return nil
}

func trashed(ctx context.Context, s *ctxdir.Store, id uuid.UUID, dryRun bool) (ctxdir.Item, error) {
	if !dryRun {
		return s.Remove(ctx, id)
	}
	root, name := s.Info().Path, id.String()
	if !isFolder(filepath.Join(root, name)) {
		name += ".json" // a legacy context
	}
	t := ctxdir.Item{Context: id, Path: "trash/…/" + name, Reason: "removed"}
	err := filepath.WalkDir(filepath.Join(root, name), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			t.Bytes += info.Size()
		}
		return err
	})
	return t, err
}
