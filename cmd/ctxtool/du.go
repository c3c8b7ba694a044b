package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

type sizeRecord struct {
	Record        string `json:"record"`
	Context       string `json:"context"`
	Branch        string `json:"branch,omitempty"` // none for the whole context
	Messages      int64  `json:"messages"`
	Bytes         int64  `json:"bytes"`
	ArchivedBytes int64  `json:"archived_bytes"`
	BlobBytes     *int64 `json:"blob_bytes,omitempty"` // of one whole context: on disk, even if shared with others
	Problem       string `json:"problem,omitempty"`
}

func (a *app) duCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "du [CONTEXT]",
		Short: "Show the sizes of contexts and branches",
		Long: `Show the size of each context, largest first, or of one context and each of its branches. Sizes come
from the index. The size of a branch counts its own messages, without inherited ones. The size of a
context includes its metadata. The blobs of a context have a separate row: they are compressed, and
other contexts may share them.

Archived messages count with their uncompressed size; archived_bytes is their part of the sum. Run
"ls -l CONTEXT/archive" for the size of the packs on disk.`,
		Example:           "  ctxtool du\n  ctxtool du 7c2f",
		Annotations:       exits("a context has a problem", ofStores...),
		Args:              between(0, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.onStore(a.contextSizes)(cmd, args)
			}
			return a.onContext(a.branchSizes, ctxdir.WithReadOnly())(cmd, args)
		},
	}
}

func (a *app) contextSizes(ctx context.Context, s *ctxdir.Store, _ []string) error {
	all, err := listAll(ctx, s, ctxdir.ListOptions{Kind: "*", Order: ctxdir.OrderSize})
	if err != nil {
		return err
	}
	t := table{head: []string{"SIZE", "MESSAGES", "CONTEXT", "TITLE"}, right: []int{0, 1}, shrink: []int{3}}
	short := shortIDsIn(s)
	var bytes, messages int64
	for _, s := range all {
		t.add(sizeOf(s), humanSize(s.Bytes), humanCount(s.Messages), short.of(s.ID), s.Title)
		bytes, messages = bytes+s.Bytes, messages+s.Messages
	}
	t.add(nil, humanSize(bytes), humanCount(messages), "total", "")
	if err := a.printTable(&t); err != nil {
		return err
	}
	return listProblems(all)
}

func sizeOf(s ctxdir.Summary) sizeRecord {
	return sizeRecord{
		Record: "size", Context: s.ID.String(), Messages: s.Messages, Bytes: s.Bytes, ArchivedBytes: s.Archived,
		Problem: problemText(s.Problem),
	}
}

func (a *app) branchSizes(ctx context.Context, c *ctxdir.Context, _ []string) error {
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	sum := c.Summary()
	blobs, err := c.BlobBytes(ctx)
	if err != nil {
		return err
	}
	whole := sizeOf(sum)
	if blobs > 0 {
		whole.BlobBytes = &blobs
	}
	t := table{head: []string{"SIZE", "MESSAGES", "BRANCH"}, right: []int{0, 1}, shrink: []int{2}}
	for _, b := range branches {
		r := sizeRecord{
			Record: "size", Context: c.ID().String(), Branch: b.Name, Messages: b.Messages, Bytes: b.Bytes, ArchivedBytes: b.Archived,
		}
		t.add(r, humanSize(b.Bytes), humanCount(b.Messages), b.Name)
	}
	t.add(whole, humanSize(sum.Bytes), humanCount(sum.Messages), "whole context")
	if sum.Archived > 0 {
		t.add(nil, humanSize(sum.Archived), "", "archived, before compression")
	}
	if blobs > 0 {
		t.add(nil, humanSize(blobs), "", "blobs")
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	return problemOf(c)
}
