package main

import (
	"context"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/disk"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/spf13/cobra"
)

// diskRecord is what the files of a kind take.
type diskRecord struct {
	Record  string `json:"record"`
	Context string `json:"context,omitempty"` // none for the whole store
	Kind    string `json:"kind"`
	disk.Use
}

// archivingRecord is an estimate of what archiving every message would free on the disk.
type archivingRecord struct {
	Record  string `json:"record"`
	Context string `json:"context,omitempty"`
	Freed   int64  `json:"freed_bytes"`
}

func (a *app) duCmd() *cobra.Command {
	var apparent bool
	cmd := &cobra.Command{
		Use:   "du [CONTEXT]",
		Short: "Show the sizes of contexts and branches",
		Long: `Show the size of each context, largest first, or of one context and each of its branches. The size
of a branch counts its own messages, without inherited ones and uncompressed. The size of a context
includes its metadata. The blobs of a context have a separate row: they are compressed, and other
contexts may share them.

DISK is the space that files take on the disk, where each small file takes a whole block. A second
table shows this space by kind of file, and how much archiving every message would free, estimated
from a sample. --apparent leaves it out, which is faster.`,
		Example:           "  ctxtool du\n  ctxtool du 7c2f",
		Annotations:       exits("a context has a problem", ofStores...),
		Args:              between(0, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.onStore(func(ctx context.Context, s *ctxdir.Store, _ []string) error {
					return a.contextSizes(ctx, s, apparent)
				})(cmd, args)
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, args []string) error {
				id, err := resolve(s, args[0])
				if err != nil {
					return err
				}
				return withOpen(ctx, s, id, func(c *ctxdir.Context) error { return a.branchSizes(ctx, s, c, apparent) })
			}, ctxdir.Options{ReadOnly: true})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&apparent, "apparent", false, "show sizes of content only, not the space on the disk")
	return cmd
}

func (a *app) contextSizes(ctx context.Context, s *ctxdir.Store, apparent bool) error {
	all, err := listAll(ctx, s, ctxdir.ListOptions{Kind: "*", Order: ctxdir.OrderSize})
	if err != nil {
		return err
	}
	t := term.Table{Head: []string{"SIZE", "MESSAGES", "CONTEXT", "TITLE"}, Right: []int{0, 1}, Shrink: []int{3}}
	report := disk.NewReport(s.Info().Path)
	short := shortIDsIn(s)
	var bytes, messages int64
	for _, sum := range all {
		row := []string{plain.Size(sum.Bytes), plain.Number(sum.Messages), short.of(sum.ID), sum.Title}
		r := sizeOf(sum)
		if !apparent {
			use, err := report.Context(ctx, sum.ID)
			if err != nil {
				return err
			}
			r.Disk, row = &use, slices.Insert(row, 1, plain.Size(use))
		}
		t.Add(r, row...)
		bytes, messages = bytes+sum.Bytes, messages+sum.Messages
	}
	row := []string{plain.Size(bytes), plain.Number(messages), "total", ""}
	if !apparent {
		if err := report.Store(ctx); err != nil {
			return err
		}
		t.Head, t.Right, t.Shrink = slices.Insert(t.Head, 1, "DISK"), []int{0, 1, 2}, []int{4}
		row = slices.Insert(row, 1, plain.Size(report.Total().Disk))
	}
	t.Add(nil, row...)
	if err := a.printTable(&t); err != nil {
		return err
	}
	if !apparent {
		if err := a.printDisk(ctx, report, ""); err != nil {
			return err
		}
	}
	return listProblems(all)
}

func sizeOf(s ctxdir.Summary) record.Size {
	size := record.OfSize(s)
	size.Record = "size"
	return size
}

func (a *app) branchSizes(ctx context.Context, s *ctxdir.Store, c *ctxdir.Context, apparent bool) error {
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	sum := c.Summary()
	blobs, err := c.Admin().BlobBytes(ctx)
	if err != nil {
		return err
	}
	report := disk.NewReport(s.Info().Path)
	whole := sizeOf(sum)
	if blobs > 0 {
		whole.BlobBytes = &blobs
	}
	if !apparent {
		use, err := report.Context(ctx, c.ID())
		if err != nil {
			return err
		}
		whole.Disk = &use
	}
	t := term.Table{Head: []string{"SIZE", "MESSAGES", "BRANCH"}, Right: []int{0, 1}, Shrink: []int{2}, Names: []int{2}}
	for _, b := range branches {
		r := record.OfBranchSize(c, b)
		r.Record = "size"
		t.Add(r, plain.Size(b.Bytes), plain.Number(b.Messages), b.Name)
	}
	t.Add(whole, plain.Size(sum.Bytes), plain.Number(sum.Messages), "whole context")
	if sum.Archived > 0 {
		t.Add(nil, plain.Size(sum.Archived), "", "archived, before compression")
	}
	if blobs > 0 {
		t.Add(nil, plain.Size(blobs), "", "blobs, which other contexts may share")
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	if !apparent {
		if err := a.printDisk(ctx, report, c.ID().String()); err != nil {
			return err
		}
	}
	return problemOf(c)
}

// printDisk prints a table by kind of file, and the estimate. context is "" for the store.
func (a *app) printDisk(ctx context.Context, d *disk.Report, context string) error {
	t := term.Table{Head: []string{"SIZE", "DISK", "FILES", "KIND"}, Right: []int{0, 1, 2}}
	for _, kind := range disk.Kinds {
		if u := d.OfKind(kind); u.Disk > 0 {
			t.Add(diskRecord{"disk", context, kind, u}, plain.Size(u.Bytes), plain.Size(u.Disk), plain.Number(u.Files), kind)
		}
	}
	if !a.json {
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	freed := d.Freed(ctx)
	if a.json {
		return a.record(archivingRecord{"archiving", context, freed})
	}
	if freed == 0 {
		return nil
	}
	return a.printf("\nArchiving every message would free about %s.\n", plain.Size(freed))
}
