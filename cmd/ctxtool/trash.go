package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) trashCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "List, restore or purge removed items",
		Long: `List, restore or purge removed items: contexts, branches, the ends of rewound branches, and files
that repair replaced. Items stay in the trash for a week; garbage collection purges older ones.

ITEM is the id of an item, as "ctxtool trash ls" shows it, any unique prefix or suffix of the id,
or the former name: any name of a context, or the name of a branch.`,
		Example:     "  ctxtool trash ls\n  ctxtool trash restore 5f2f3c0d",
		Annotations: exits("failed to list or purge some items", ofStores...),
		Args:        cobra.ArbitraryArgs,
		RunE:        needVerb,
	}
	cmd.AddCommand(a.trashLsCmd(), a.trashRestoreCmd(), a.trashEmptyCmd())
	return cmd
}

func (a *app) trashLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "ls [CONTEXT…]",
		Short: "List the items in the trash",
		Long: `List the items in the trash of the store and of its contexts. With CONTEXT, list only the items of
these contexts, which may be in the trash themselves.`,
		Example:           "  ctxtool trash ls\n  ctxtool trash ls 7c2f",
		Annotations:       exits("failed to list some items", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE:              a.onStore(a.listTrash, ctxdir.Options{ReadOnly: true}),
	}
}

func (a *app) listTrash(ctx context.Context, s *ctxdir.Store, refs []string) error {
	grace, err := record.Grace(s)
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	for _, ref := range refs {
		id, err := resolve(s, ref)
		if errors.Is(err, ctxdir.ErrNotExist) {
			id, err = removedContext(ctx, s, ref, err)
		}
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	t := term.Table{
		Head: []string{"ITEM", "KIND", "SIZE", "REMOVED", "EXPIRES", "CONTEXT", "REASON"}, Right: []int{2},
		Shrink: []int{6}, Keep: map[int]int{6: term.TitleWidth}, Drop: []int{1, 3},
	}
	failed := 0
	var items []ctxdir.TrashItem
	var contexts []uuid.UUID
	for x, err := range s.Trash(ctx, ids...) {
		if err != nil {
			return err
		}
		if x.ID == uuid.Nil {
			failed++
			a.warnOf(x.Problem)
			continue
		}
		items = append(items, x)
		contexts = append(contexts, x.Context)
	}
	short := shortIDsOf(contexts)
	for _, x := range items {
		r := record.OfTrashed(x, grace)
		r.Record = "trashed"
		context := ""
		if x.Context != uuid.Nil {
			context = short.of(x.Context)
		}
		t.Add(r, endOf(x.ID), string(cmp.Or(x.Kind, "?")), plain.Size(x.Bytes), plain.Ago(x.RemovedAt), r.ExpiresAt.Local().Format(time.DateOnly),
			context, x.Reason)
	}
	if t.Len() > 0 {
		if err := a.printTable(&t); err != nil {
			return err
		}
	}
	if failed > 0 {
		return problems("", "failed to list %s", plain.Count(failed, "trash folder"))
	}
	return nil
}

// removedContext returns the context in the trash that an argument names, or the error of the search among the others.
func removedContext(ctx context.Context, s *ctxdir.Store, ref string, otherwise error) (uuid.UUID, error) {
	if id, err := uuid.Parse(ref); err == nil && len(ref) == len(id.String()) {
		return id, nil // it may have been removed several times
	}
	item, err := s.ResolveItem(ctx, ref)
	if err != nil {
		return uuid.Nil, otherwise
	}
	for x, err := range s.Trash(ctx) {
		if err == nil && x.ID == item && x.Kind == "context" {
			return x.Context, nil
		}
	}
	return uuid.Nil, otherwise
}

// items resolves every argument, before a verb changes the first item.
func items(ctx context.Context, s *ctxdir.Store, refs []string) (ids []uuid.UUID, err error) {
	for _, ref := range refs {
		if ref == "" {
			return nil, badArgument(`run "ctxtool trash ls" to list the items`, "ITEM is empty")
		}
		id, err := s.ResolveItem(ctx, ref)
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
		Short: "Restore items from the trash",
		Long: `Restore items from the trash: contexts; branches and the ends of rewound branches, under their
names or similar ones; old versions of messages, in place of the current ones; blobs. ITEM is the
former name of a context or branch, the id of an item, or any unique prefix or suffix of the id.`,
		Example:           "  ctxtool trash restore 5f2f3c0d",
		Annotations:       exits("", ofStores...),
		Args:              between(1, -1),
		ValidArgsFunction: a.completeItems,
		RunE:              a.onStore(a.restore),
	}
}

func (a *app) restore(ctx context.Context, s *ctxdir.Store, refs []string) error {
	ids, err := items(ctx, s, refs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		r, err := s.Restore(ctx, id)
		if err != nil {
			return err
		}
		restored := record.OfRestored(r)
		restored.Record = "restored"
		line := r.Path + "  " + plain.Size(r.Bytes)
		if r.Kind == ctxdir.TrashLine {
			line = fmt.Sprintf("%s  %s  branch %s", r.Path, plain.Count(restored.Messages, "message"), plain.OneLine(r.Name))
		}
		if err := a.result(restored, "%s", line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) trashEmptyCmd() *cobra.Command {
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "empty [ITEM…]",
		Short: "Purge items from the trash",
		Long: `Purge items from the trash for good. Without ITEM, purge everything older than --older-than. See
"ctxtool trash restore" for ITEM.`,
		Example:           "  ctxtool trash empty --older-than 72h --dry-run\n  ctxtool trash empty 5f2f3c0d",
		Annotations:       exits("failed to purge some items", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeItems,
		RunE: func(cmd *cobra.Command, args []string) error {
			if older < 0 {
				return usage(cmd, "--older-than must not be negative")
			}
			if older > 0 && len(args) > 0 {
				return usage(cmd, "--older-than and ITEM cannot be used together")
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, args []string) error {
				return a.empty(ctx, s, args, older)
			})(cmd, args)
		},
	}
	cmd.Flags().DurationVar(&older, "older-than", 0, "purge only items removed at least `DURATION` ago")
	a.dryRunFlag(cmd)
	a.yesFlag(cmd)
	return cmd
}

func (a *app) empty(ctx context.Context, s *ctxdir.Store, refs []string, older time.Duration) error {
	ids, err := items(ctx, s, refs)
	if err != nil {
		return err
	}
	purge := func(ctx context.Context, o ctxdir.PurgeOptions) ([]ctxdir.TrashItem, error) {
		o.Items, o.Age, o.All = ids, older, len(ids) == 0 && older == 0
		return s.Purge(ctx, o)
	}
	if a.asks() {
		plan, err := purge(ctx, ctxdir.PurgeOptions{DryRun: true, Failed: func(error) {}}) // the purge reports it
		if err == nil && len(plan) > 0 {
			err = a.confirm(ctx, "Purge %s from the trash for good (%s)?", plain.Count(len(plan), "item"), plain.Size(itemBytes(plan)))
		}
		if err != nil {
			return err
		}
	}
	failed := 0
	var done []ctxdir.TrashItem
	lines := itemLines{a: a}
	print := func(t ctxdir.TrashItem) error { return lines.add(t, true) }
	err = withReport(ctx, print, func(ctx context.Context, report func(ctxdir.TrashItem)) (err error) {
		done, err = purge(ctx, ctxdir.PurgeOptions{DryRun: a.dryRun, Report: report, Failed: func(err error) {
			failed++
			a.warnOf(err)
		}})
		return err
	})
	if err = cmp.Or(err, lines.print()); err != nil {
		return err
	}
	verb := "purged"
	if a.dryRun {
		verb = "would purge"
	}
	if !a.json {
		a.note("%s %s (%s)", verb, plain.Count(len(done), "item"), plain.Size(itemBytes(done)))
	}
	if failed > 0 {
		return problems("", "failed to purge %s", plain.Count(failed, "item"))
	}
	return nil
}

// itemBytes is the size of items together.
func itemBytes(items []ctxdir.TrashItem) (size int64) {
	for _, x := range items {
		size += x.Bytes
	}
	return size
}
