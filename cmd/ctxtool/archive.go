package main

import (
	"fmt"

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

func (a *app) archiveCmd() *cobra.Command {
	var o ctxdir.ArchiveOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "archive CONTEXT",
		Short: "Move old messages to a compressed pack; they are read as before",
		Long: `Move messages that are older than 180 days, or than --older-than says, from their files to a pack in the context's archive/, or
with --all every message. A message that tells no time is as old as its file. Everything else works as before: show, append, fork, export, check
read and write an archived context like any other. A pack is a zstd file: zstdcat prints the messages in it.

A message that was edited by hand stays a file until "ctxtool repair" has taken the edit in. The blobs of payloads that went into the pack go with the next
collections ("ctxtool gc").`,
		Example: `  ctxtool archive 7c2f --all
  ctxtool archive 7c2f --older-than 720h --branch main`,
		Annotations:       exits("", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && cmd.Flags().Changed("older-than"):
				return usage(cmd, "either --all or --older-than")
			case o.OlderThan < 0:
				return usage(cmd, "--older-than: a time from 0 on")
			case all:
				o.OlderThan = 0
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				bar := a.newProgress("Archiving")
				o.Progress = func(done, all int64) { bar.steps("messages", done, all) }
				done, err := c.Archive(cmd.Context(), o)
				bar.clear()
				return a.archived("archived", c, done, err)
			})
		},
	}
	cmd.Flags().DurationVar(&o.OlderThan, "older-than", ctxdir.DefaultArchiveAge, "archive messages that are older, as in 720h")
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
				return a.archived("unarchived", c, done, err)
			})
		},
	}
}

// archived tells what was done.
func (a *app) archived(record string, c *ctxdir.Context, done ctxdir.Archived, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		err = a.record(archivedRecord{record, c.ID().String(), done.Messages, done.Before, done.After, done.Stayed})
	} else {
		text := plural(int(done.Messages), "message", "messages") + " " + record
		if done.Messages > 0 {
			text += fmt.Sprintf(", %s before, %s after", humanSize(done.Before), humanSize(done.After))
		}
		err = a.printf("%s\n", text)
	}
	if err == nil && done.Stayed > 0 {
		a.note("%s stayed: edited by hand, damaged or too large; \"ctxtool check\" tells", plural(int(done.Stayed), "message", "messages"))
		if record == "unarchived" {
			err = &problemsError{text: "not every message could be taken out"}
		}
	}
	return err
}
