package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

type sizeRecord struct {
	Record        string `json:"record"`
	Context       string `json:"context"`
	Branch        string `json:"branch,omitempty"` // none in the line of the whole context
	Messages      int64  `json:"messages"`
	Bytes         int64  `json:"bytes"`
	ArchivedBytes int64  `json:"archived_bytes"`
	BlobBytes     *int64 `json:"blob_bytes,omitempty"` // of one whole context: on disk, shared with others or not
	Problem       string `json:"problem,omitempty"`
}

func (a *app) duCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "du [CONTEXT]",
		Short: "Show sizes: of each context, or of one and its branches",
		Long: `Show sizes as the index has them: of each context, largest first, or of one context and each of its branches. A
branch's bytes are those of its own messages, without those it inherits; a context's include its metadata. What one context has in
blobs, compressed and perhaps shared with others, is a line of its own. Archived messages count with the length that they have when
they are read (archived_bytes says how much of the sum that is); what they take on the disk, "ls -l CONTEXT/archive" shows.`,
		Example:           "  ctxtool du\n  ctxtool du 7c2f",
		Annotations:       exits("a context has a problem", ofStores...),
		Args:              between(0, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.withStore(cmd.Context(), func(s *ctxdir.Store) error { return a.sizes(cmd.Context(), s) })
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return a.branchSizes(cmd.Context(), c)
			}, ctxdir.WithReadOnly())
		},
	}
}

func (a *app) sizes(ctx context.Context, s *ctxdir.Store) error {
	var all []ctxdir.Summary
	for sum, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(x, y ctxdir.Summary) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), slices.Compare(x.ID[:], y.ID[:]))
	})
	if a.json {
		for _, s := range all {
			if err := a.record(sizeOf(s)); err != nil {
				return err
			}
		}
		return listProblems(all)
	}
	t := table{head: []string{"SIZE", "MESSAGES", "CONTEXT", "TITLE"}, right: []int{0, 1}, give: []int{3}}
	var bytes, messages int64
	for _, s := range all {
		t.add(humanSize(s.Bytes), humanCount(s.Messages), ending(s.ID), s.Title)
		bytes, messages = bytes+s.Bytes, messages+s.Messages
	}
	t.add(humanSize(bytes), humanCount(messages), "total", "")
	if err := a.printTable(&t); err != nil {
		return err
	}
	return listProblems(all)
}

func sizeOf(s ctxdir.Summary) sizeRecord {
	return sizeRecord{
		Record:        "size",
		Context:       s.ID.String(),
		Messages:      s.Messages,
		Bytes:         s.Bytes,
		ArchivedBytes: s.Archived,
		Problem:       problemText(s.Problem),
	}
}

func (a *app) branchSizes(ctx context.Context, c *ctxdir.Context) error {
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	sum := c.Summary()
	blobs, err := c.BlobBytes(ctx)
	if err != nil {
		return err
	}
	if a.json {
		for _, b := range branches {
			r := sizeRecord{
				Record:        "size",
				Context:       c.ID().String(),
				Branch:        b.Name,
				Messages:      b.Messages,
				Bytes:         b.Bytes,
				ArchivedBytes: b.Archived,
			}
			if err := a.record(r); err != nil {
				return err
			}
		}
		whole := sizeOf(sum)
		if blobs > 0 {
			whole.BlobBytes = &blobs
		}
		if err := a.record(whole); err != nil {
			return err
		}
		return problemOf(c)
	}
	t := table{head: []string{"SIZE", "MESSAGES", "BRANCH"}, right: []int{0, 1}, give: []int{2}}
	for _, b := range branches {
		t.add(humanSize(b.Bytes), humanCount(b.Messages), b.Name)
	}
	t.add(humanSize(sum.Bytes), humanCount(sum.Messages), "whole context")
	if sum.Archived > 0 {
		t.add(humanSize(sum.Archived), "", "of it in packs, before compression")
	}
	if blobs > 0 {
		t.add(humanSize(blobs), "", "blobs")
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	return problemOf(c)
}
