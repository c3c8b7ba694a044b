package main

import (
	"cmp"
	"context"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (a *app) gcCmd() *cobra.Command {
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "gc [CONTEXT…]",
		Short: "Collect unreachable messages (automatic, daily)",
		Long: `Purge what was removed longer ago than the grace period: branches, the ends of rewound branches, and
items of the trash. Move blobs that no message has referred to for the grace period to the trash of
the store. Archive old messages if the settings of the store say so: see "ctxtool config". "ctxtool
trash" lists and restores what was removed. With CONTEXT, collect only in these contexts.

Verbs that write collect automatically: once a day, for at most two seconds. collected.jsonl in the
store records what they removed and archived. --no-gc or $CTXDIR_NO_GC prevents it.

If there are many items of a kind, gc prints their number; --verbose and --json list each item.`,
		Example: `  ctxtool gc --dry-run
  ctxtool gc --grace 720h`,
		Annotations:       exits("failed to collect some items", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if grace < 0 {
				return usage(cmd, "--grace must not be negative")
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, args []string) error {
				ids, all, err := selectContexts(s, args)
				if err != nil {
					return err
				}
				o := ctxdir.CollectOptions{Contexts: ids, All: all, DryRun: a.dryRun}
				if cmd.Flags().Changed("grace") {
					o.Grace, o.NoGrace = grace, grace == 0
				}
				return a.gc(ctx, s, o)
			})(cmd, args)
		},
	}
	durationFlag(cmd, &grace, "grace", defaultGrace, "set the grace period to `DURATION`, instead of the store's")
	a.dryRunFlag(cmd)
	a.yesFlag(cmd)
	return cmd
}

func (a *app) gc(ctx context.Context, s *ctxdir.Store, o ctxdir.CollectOptions) error {
	if err := a.confirmGC(ctx, s, o); err != nil {
		return err
	}
	kinds := map[string]int{}
	contexts := map[uuid.UUID]bool{}
	items, failed, purged, size := 0, 0, 0, int64(0)
	lines := itemLines{a: a}
	print := func(x ctxdir.TrashItem) error {
		if x.Context != uuid.Nil {
			contexts[x.Context] = true
		}
		items++
		kinds[string(x.Kind)]++
		if size += x.Bytes; x.Purged {
			purged++
		}
		return lines.add(x, x.Purged)
	}
	err := withReport(ctx, print, func(ctx context.Context, report func(ctxdir.TrashItem)) error {
		o.Report, o.Archived = report, a.collectArchived
		o.Failed = func(err error) {
			failed++
			a.warnOf(err)
		}
		_, err := s.Collect(ctx, o)
		return err
	})
	if err = cmp.Or(err, lines.print()); err != nil {
		return err
	}
	format := "moved %s to the trash and purged %s (%s)"
	if a.dryRun {
		format = "would move %s to the trash and purge %s (%s)"
	}
	if !a.json {
		a.note(format, plain.Count(items-purged, "item"), plain.Number(int64(purged)), plain.Size(size))
	} else if err := a.record(summaryRecord{Record: "summary", Contexts: len(contexts), Findings: items, ByKind: kinds}); err != nil {
		return err
	}
	if failed > 0 {
		return problems("", "failed to collect %s", plain.Count(failed, "item"))
	}
	return nil
}

// confirmGC asks before a collection that would purge something.
func (a *app) confirmGC(ctx context.Context, s *ctxdir.Store, o ctxdir.CollectOptions) error {
	if !a.asks() {
		return nil
	}
	o.DryRun, o.Failed = true, func(error) {} // the collection reports it
	plan, err := s.Collect(ctx, o)
	purged, size := 0, int64(0)
	for _, x := range plan {
		if x.Purged {
			purged, size = purged+1, size+x.Bytes
		}
	}
	if err != nil || purged == 0 {
		return err
	}
	return a.confirm(ctx, "Purge %s for good (%s)?", plain.Count(purged, "item"), plain.Size(size))
}

// collectArchived prints what a collection archived in a context.
func (a *app) collectArchived(done ctxdir.ArchiveResult) {
	r := rewriteRecord{Record: "archived", Context: record.ID(done.Context), Messages: done.Messages, Before: done.Before, After: done.After}
	r.Stayed, r.DryRun = done.Stayed, a.dryRun
	// The verb ends with the error.
	_ = a.result(r, "%s %9s  %s  %s", r.Record, plain.Size(r.Before), r.Context, plain.Count(r.Messages, "message"))
}
