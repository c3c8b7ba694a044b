package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// trashRecord is an item in trash.
type trashRecord struct {
	collectedRecord
	Name      string    `json:"name,omitempty"`
	RemovedAt time.Time `json:"removed_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Problem   string    `json:"problem,omitempty"`
}

type restoredRecord struct {
	Record   string `json:"record"`
	Item     string `json:"item"`
	Kind     string `json:"kind"`
	Context  string `json:"context,omitempty"`
	Path     string `json:"path"`
	Branch   string `json:"branch,omitempty"`
	Messages int64  `json:"messages,omitempty"`
	Missing  int64  `json:"missing,omitempty"`
	Bytes    int64  `json:"bytes"`
}

func (a *app) trashCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "List, bring back or purge what was removed",
		Long: `List, bring back or purge what was removed: contexts, messages that no branch showed any longer, what repair replaced. Everything stays in
the trash for a week; gc purges what has been there for longer.`,
		Example:     "  ctxtool trash ls\n  ctxtool trash restore 5f2f3c0d",
		Annotations: exits("some items could not be listed or purged", ofStores...),
		Args:        cobra.ArbitraryArgs,
		RunE:        needVerb,
	}
	cmd.AddCommand(a.trashLsCmd(), a.trashRestoreCmd(), a.trashEmptyCmd())
	return cmd
}

func (a *app) trashLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "ls [CONTEXT…]",
		Short:             "List what is in the trash of the store and its contexts",
		Long:              `List what is in the trash of the store and of its contexts; with CONTEXT, what is of these, also of such that are in the trash themselves (whole ids then).`,
		Example:           "  ctxtool trash ls\n  ctxtool trash ls 7c2f",
		Annotations:       exits("a trash could not be listed", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				var ids []uuid.UUID
				for _, ref := range args {
					id, err := resolve(s, ref)
					if errors.Is(err, ctxdir.ErrNotExist) && len(ref) == 36 {
						id, err = parseID(cmd, "CONTEXT", ref)
					}
					if err != nil {
						return err
					}
					ids = append(ids, id)
				}
				return a.listTrash(cmd.Context(), s, ids)
			}, ctxdir.WithReadOnly())
		},
	}
}

func (a *app) listTrash(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID) error {
	t := table{head: []string{"ITEM", "KIND", "SIZE", "REMOVED", "PURGED", "CONTEXT", "WHAT"}, right: []int{2}, give: []int{6}}
	failed := 0
	for x, err := range s.Trash(ctx, ids...) {
		if err != nil && x.Path == "" {
			return err
		}
		if err != nil {
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
			continue
		}
		expires := x.RemovedAt.Add(defaultGrace)
		if expires.UTC().Year() > 9999 { // such a time cannot be written
			expires = x.RemovedAt
		}
		if a.json {
			r := trashRecord{
				collectedRecord: collectedRecordOf(x, false, false),
				Name:            x.Name,
				RemovedAt:       x.RemovedAt.UTC(),
				ExpiresAt:       expires.UTC(),
			}
			if x.Problem != nil {
				r.Problem = x.Problem.Error()
			}
			if err := a.record(r); err != nil {
				return err
			}
			continue
		}
		kind := x.Kind
		if kind == "" {
			kind = "?"
		}
		context := ""
		if x.Context != uuid.Nil {
			context = ending(x.Context)
		}
		t.add(ending(x.ID), kind, humanSize(x.Bytes), humanTime(x.RemovedAt), expires.Local().Format(time.DateOnly), context, x.Reason)
	}
	if !a.json && len(t.rows) > 0 {
		if err := a.printTable(&t); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &problemsError{text: plural(failed, "trash", "trashes") + " could not be listed"}
	}
	return nil
}

// items finds the items that arguments name, before anything is done to the first.
func items(ctx context.Context, s *ctxdir.Store, refs []string) (ids []uuid.UUID, err error) {
	for _, ref := range refs {
		id, err := s.ResolveItem(ctx, ref)
		if errors.Is(err, ctxdir.ErrInvalid) {
			return nil, &usageError{fmt.Sprintf("%q is not an item id, nor a part of one", ref), `"ctxtool trash ls" lists the items`}
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (a *app) trashRestoreCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "restore ITEM…",
		Short: "Bring things back from the trash",
		Long: `Bring things back from the trash to where they were: a context; messages that no branch showed, each to its own position, with
a branch that shows them; an old version of a message, in the place of the present one; blobs. ITEM is an id, or any unique beginning or
end of one.`,
		Example:           "  ctxtool trash restore 5f2f3c0d",
		Annotations:       exits("", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeItems,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := items(cmd.Context(), s, args)
				if err != nil {
					return err
				}
				return a.restore(cmd.Context(), s, ids)
			})
		},
	}
}

func (a *app) restore(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID) error {
	for _, id := range ids {
		r, err := s.Restore(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case a.json:
			err = a.record(restoredRecord{"restored", r.ID.String(), r.Kind, idText(r.Context), r.Path, r.Name, r.Messages, r.Missing, r.Bytes})
		case r.Name != "":
			err = a.printf("%s  %s  branch %s\n", r.Path, plural(int(r.Messages), "message", "messages"), oneLine(r.Name))
		default:
			err = a.printf("%s  %s\n", r.Path, humanSize(r.Bytes))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) trashEmptyCmd() *cobra.Command {
	var older time.Duration
	cmd := &cobra.Command{
		Use:               "empty [ITEM…]",
		Short:             "Purge what is in the trash, now",
		Long:              `Purge items of the trash for good, or without ITEM everything that was removed longer ago than --older-than tells.`,
		Example:           "  ctxtool trash empty --older-than 72h --dry-run\n  ctxtool trash empty 5f2f3c0d",
		Annotations:       exits("some items could not be purged", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeItems,
		RunE: func(cmd *cobra.Command, args []string) error {
			if older < 0 || older > 0 && len(args) > 0 {
				return usage(cmd, "--older-than: a time from 0 on, and no ITEM beside it")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, err := items(cmd.Context(), s, args)
				if err != nil {
					return err
				}
				return a.empty(cmd.Context(), s, ids, older)
			})
		},
	}
	cmd.Flags().DurationVar(&older, "older-than", 0, "only what was removed so long ago, as in 168h")
	a.dryRunFlag(cmd)
	return cmd
}

func (a *app) empty(ctx context.Context, s *ctxdir.Store, ids []uuid.UUID, older time.Duration) error {
	failed := 0
	print := func(t ctxdir.Item) error { return a.collected(t, true) }
	err := printing(ctx, print, func(ctx context.Context, report func(ctxdir.Item)) error {
		o := ctxdir.RemoveOptions{DryRun: a.dryRun, Report: report, Failed: func(err error) {
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
		}}
		var err error
		if len(ids) > 0 {
			_, err = s.PurgeItems(ctx, ids, o)
		} else {
			_, err = s.PurgeOlder(ctx, older, o)
		}
		return err
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return &problemsError{text: plural(failed, "item", "items") + " could not be purged"}
	}
	return nil
}
