package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// archivedRecord tells what archiving did, or, as "unarchived", undid.
type archivedRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Messages int64  `json:"messages"`
	Before   int64  `json:"bytes_before"`
	After    int64  `json:"bytes_after"`
	Stayed   int64  `json:"stayed,omitempty"`
}

// archiveAge is the age from which on messages are archived unless a flag says otherwise.
const archiveAge = 180 * 24 * time.Hour

func (a *app) archiveCmd() *cobra.Command {
	var o ctxdir.ArchiveOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "archive [CONTEXT…]",
		Short: "Move old messages to a compressed pack; they are read as before",
		Long: `Move messages that are older than 180 days, or than --older-than says, from their files to a pack in the context's archive/, or
with --all every message. A message that tells no time is as old as its file. Everything else works as before: show, append, fork, export, check
read and write an archived context like any other. A pack is a zstd file: zstdcat prints the messages in it.

Without CONTEXT, archive every context of the store. Contexts that are archived together keep a payload that several of them refer to once, as a blob;
a context that is archived alone takes copies of all its payloads into its pack.

A message that was edited by hand stays a file until "ctxtool repair" has taken the edit in. The blobs of payloads that went into the pack go with the next
collections ("ctxtool gc").`,
		Example: `  ctxtool archive
  ctxtool archive 7c2f --all
  ctxtool archive 7c2f --older-than 720h --branch main`,
		Annotations:       exits("some contexts could not be archived", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && cmd.Flags().Changed("older-than"):
				return usage(cmd, "either --all or --older-than")
			case o.OlderThan < 0:
				return usage(cmd, "--older-than: a time from 0 on")
			case all:
				o.OlderThan = 0
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				var err error
				if o.Contexts, o.All, err = chosen(s, args); err != nil {
					return err
				}
				return a.archive(cmd.Context(), s, o)
			})
		},
	}
	cmd.Flags().DurationVar(&o.OlderThan, "older-than", archiveAge, "archive messages that are older, as in 720h")
	cmd.Flags().BoolVar(&all, "all", false, "archive every message")
	a.branchFlag(cmd, &o.Branch, "branch", "only what this `BRANCH` shows")
	return cmd
}

func (a *app) unarchiveCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "unarchive CONTEXT",
		Short: "Move archived messages back to files",
		Long: `Move every message in the packs of a context back to a file of its own, byte for byte what it was. Payloads become blobs
again.`,
		Example:           "  ctxtool unarchive 7c2f",
		Annotations:       exits("some messages stayed where they were", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				bar := a.newProgress("Taking out")
				done, err := c.Unarchive(cmd.Context(), func(done, all int64) { bar.steps("messages", done, all) })
				bar.clear()
				if err != nil {
					return err
				}
				return a.archived("unarchived", "", done)
			})
		},
	}
}

// archive archives contexts. The progress of a single one counts its messages, and its failure is that of the verb.
func (a *app) archive(ctx context.Context, s *ctxdir.Store, o ctxdir.ArchiveOptions) error {
	several, count := len(o.Contexts) != 1, len(o.Contexts)
	if o.All {
		of, err := contextsOf(s, nil)
		if err != nil {
			return err
		}
		count = len(of)
	}
	bar := a.newProgress("Archiving")
	if !several {
		o.Progress = func(done, all int64) { bar.steps("messages", done, all) }
	}
	looked, failed := 0, 0
	var sum ctxdir.ArchiveResult
	bar.contexts(looked, count)
	print := func(done ctxdir.ArchiveResult) error {
		bar.clear()
		looked++
		sum.Messages, sum.Before, sum.After = sum.Messages+done.Messages, sum.Before+done.Before, sum.After+done.After
		defer bar.contexts(looked, count)
		switch {
		case !several:
			return a.archived("archived", "", done)
		case a.json || done.Messages > 0:
			return a.archived("archived", done.Context.String()+"  ", done)
		}
		return nil
	}
	err := printing(ctx, print, func(ctx context.Context, report func(ctxdir.ArchiveResult)) error {
		var stopped error
		if several {
			o.Failed = func(err error) {
				bar.clear()
				if ctx.Err() != nil {
					stopped = err
					return
				}
				looked, failed = looked+1, failed+1
				a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
				bar.contexts(looked, count)
			}
		}
		o.Report = report
		_, err := s.Archive(ctx, o)
		return cmp.Or(err, stopped)
	})
	bar.clear()
	if err != nil {
		return err
	}
	if several {
		a.note("%s archived in %s, %s before, %s after", plural(int(sum.Messages), "message", "messages"), plural(looked, "context", "contexts"),
			humanSize(sum.Before), humanSize(sum.After))
	}
	if failed > 0 {
		return &problemsError{text: fmt.Sprintf("%d of %d contexts could not be archived", failed, looked)}
	}
	return nil
}

// archived tells what was done to a context.
func (a *app) archived(record, name string, done ctxdir.ArchiveResult) (err error) {
	if a.json {
		err = a.record(archivedRecord{record, done.Context.String(), done.Messages, done.Before, done.After, done.Stayed})
	} else {
		text := name + plural(int(done.Messages), "message", "messages") + " " + record
		if done.Messages > 0 {
			text += fmt.Sprintf(", %s before, %s after", humanSize(done.Before), humanSize(done.After))
		}
		err = a.printf("%s\n", text)
	}
	if err == nil && done.Stayed > 0 {
		a.note(
			"%s%s stayed: edited by hand, damaged or too large; \"ctxtool check\" tells",
			name,
			plural(int(done.Stayed), "message", "messages"),
		)
		if record == "unarchived" {
			err = &problemsError{text: "not every message could be taken out"}
		}
	}
	return err
}
