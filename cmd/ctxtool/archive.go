package main

import (
	"cmp"
	"context"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/spf13/cobra"
)

// archiveAge is the default age of messages to archive.
const archiveAge = 180 * 24 * time.Hour

func (a *app) archiveCmd() *cobra.Command {
	var o ctxdir.ArchiveOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "archive [CONTEXT…]",
		Short: "Compress old messages, and remove their files",
		Long: `Compress the segments of a context, and remove the files of messages older than 180 days. The
segments keep these messages, and every verb reads and writes them as before. --older-than sets another age,
--all archives every message. --keep-last N leaves the newest N messages of each branch in files.
A segment is a zstd file: zstdcat prints its messages.

A branch is archived from its first message on. The first message that is too young keeps its file,
and so do all messages after it. A message without a time is as old as its commit. Messages that
branches share are archived once.

Without CONTEXT, archive every context of the store. "ctxtool config archive_after=4320h" lets the
daily collection archive. A message edited by hand keeps its file; "ctxtool repair" commits the edit.`,
		Example: `  ctxtool archive
  ctxtool archive --dry-run
  ctxtool archive 7c2f --all
  ctxtool archive 7c2f --older-than 720h --branch main`,
		Annotations:       exits("failed to archive some contexts", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && cmd.Flags().Changed("older-than"):
				return usage(cmd, "--all and --older-than cannot be used together")
			case o.OlderThan < 0:
				return usage(cmd, "--older-than must not be negative")
			case o.KeepLast < 0:
				return usage(cmd, "--keep-last must not be negative")
			case all:
				o.OlderThan = 0
			}
			o.DryRun = a.dryRun
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				var err error
				if o.Contexts, o.All, err = selectContexts(s, args); err != nil {
					return err
				}
				return a.archive(cmd.Context(), s, o)
			})
		},
	}
	durationFlag(cmd, &o.OlderThan, "older-than", archiveAge, "archive messages older than `DURATION`")
	cmd.Flags().BoolVar(&all, "all", false, "archive every message")
	cmd.Flags().Int64Var(&o.KeepLast, "keep-last", 0, "leave the newest `N` messages of each branch in files")
	a.branchFlag(cmd, &o.Branch, "branch", "archive only the messages of `BRANCH`")
	a.dryRunFlag(cmd)
	return cmd
}

func (a *app) unarchiveCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "unarchive CONTEXT",
		Short:             "Recreate the files of archived messages",
		Long:              "Recreate the file of every archived message of a context, byte for byte as it was.",
		Example:           "  ctxtool unarchive 7c2f",
		Annotations:       exits("the context has a problem", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: a.onContext(func(ctx context.Context, c *ctxdir.Context, _ []string) error {
			bar := a.newProgress("Unarchiving")
			done, err := c.Admin().Unarchive(ctx, func(done, all int64) { bar.Steps("messages", done, all) })
			bar.Clear()
			if err != nil {
				return err
			}
			return a.archived("unarchived", "", done)
		}),
	}
}

// archive archives contexts. For a single context, the progress counts messages, and its failure is that of the verb.
func (a *app) archive(ctx context.Context, s *ctxdir.Store, o ctxdir.ArchiveOptions) error {
	several, all := len(o.Contexts) != 1, len(o.Contexts)
	if o.All {
		ids, err := contextsOf(s, nil)
		if err != nil {
			return err
		}
		all = len(ids)
	}
	bar := a.newProgress("Archiving")
	if !several {
		o.Progress = func(done, all int64) { bar.Steps("messages", done, all) }
	}
	processed, failed := 0, 0
	short := shortIDsIn(s)
	var sum ctxdir.ArchiveResult
	bar.Items("contexts", processed, all)
	print := func(done ctxdir.ArchiveResult) error {
		bar.Clear()
		processed++
		sum.Messages, sum.Before, sum.After = sum.Messages+done.Messages, sum.Before+done.Before, sum.After+done.After
		defer bar.Items("contexts", processed, all)
		switch {
		case !several:
			return a.archived("archived", "", done)
		case a.json || done.Messages > 0:
			return a.archived("archived", short.of(done.Context)+"  ", done)
		}
		return nil
	}
	err := withReport(ctx, print, func(ctx context.Context, report func(ctxdir.ArchiveResult)) error {
		var stopped error
		if several {
			o.Failed = func(err error) {
				bar.Clear()
				if ctx.Err() != nil {
					stopped = err
					return
				}
				processed, failed = processed+1, failed+1
				a.warnOf(err)
				bar.Items("contexts", processed, all)
			}
		}
		o.Report = report
		_, err := s.Archive(ctx, o)
		return cmp.Or(err, stopped)
	})
	bar.Clear()
	if err != nil {
		return err
	}
	if several {
		a.note("%s %s in %s", a.didArchive("archived"), sizeChange(sum), plain.Count(processed, "context"))
	}
	return failures("archive", failed, processed)
}

// archived prints what archive or unarchive did to a context.
func (a *app) archived(record, name string, done ctxdir.ArchiveResult) error {
	r := rewriteRecord{record, done.Context.String(), done.Messages, done.Before, done.After, done.Stayed, a.dryRun}
	if err := a.result(r, "%s%s %s", name, a.didArchive(record), sizeChange(done)); err != nil || done.Stayed == 0 {
		return err
	}
	a.note("%sleft the files of %s: edited by hand or damaged; run \"ctxtool check\" for details", name, plain.Count(done.Stayed, "message"))
	return nil
}

// didArchive is the verb of a record, or what a dry run says.
func (a *app) didArchive(record string) string {
	if a.dryRun {
		return "would archive"
	}
	return record
}
