package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) rmCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm CONTEXT…",
		Short: "Move contexts to the trash",
		Long: `Move contexts to the trash of the store. "ctxtool trash restore CONTEXT" restores them for at
least a week, so rm does not ask.`,
		Example:           "  ctxtool rm 7c2f --dry-run\n  ctxtool rm 7c2f",
		Annotations:       exits("failed to remove some contexts", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE:              a.onStore(a.remove),
	}
	a.dryRunFlag(cmd)
	a.undoable(cmd)
	return cmd
}

// remove resolves every argument before it removes the first context, so that a typing error removes none.
func (a *app) remove(ctx context.Context, s *ctxdir.Store, refs []string) error {
	ids, err := contextsOf(s, refs)
	if err != nil {
		return err
	}
	var unique []uuid.UUID
	for _, id := range ids {
		if !slices.Contains(unique, id) {
			unique = append(unique, id)
		}
	}
	short, removed := shortIDsIn(s), []string(nil)
	failed, err := eachContext(ctx, a, "Removing", unique, func(id uuid.UUID) (ctxdir.TrashItem, error) {
		return moveToTrash(ctx, s, id, a.dryRun)
	}, func(id uuid.UUID, t ctxdir.TrashItem) error {
		r := itemRecord{
			record.TrashItem{Record: "trashed", Context: id.String(), Path: t.Path, Bytes: t.Bytes, Reason: t.Reason}, a.dryRun,
		}
		removed = append(removed, short.of(id))
		return a.result(r, "%s  %s  -> %s", id, plain.Size(t.Bytes), t.Path)
	})
	if err != nil {
		return err
	}
	if a.dryRun && !a.json {
		a.note("would move %s to the trash", plain.Count(len(unique)-failed, "context"))
	}
	if len(removed) > 0 {
		a.noteUndo(strings.Join(removed, " "), len(removed) > 1)
	}
	return failures("remove", failed, len(unique))
}

// moveToTrash removes a context. A dry run only measures it.
func moveToTrash(ctx context.Context, s *ctxdir.Store, id uuid.UUID, dryRun bool) (ctxdir.TrashItem, error) {
	if !dryRun {
		return s.Remove(ctx, id)
	}
	root, name := s.Info().Path, id.String()
	if !isFolder(filepath.Join(root, name)) {
		name += ".json" // a legacy context
	}
	t := ctxdir.TrashItem{Context: id, Path: "trash/…/" + name, Reason: "removed"}
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
