package main

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// grace is how long something must have been of no use before it is removed.
const grace = 7 * 24 * time.Hour

type sweptRecord struct {
	Record string `json:"record"`
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
	DryRun bool   `json:"dry_run,omitempty"`
}

func (a *app) gcCmd() *cobra.Command {
	var after time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Move blobs that no message refers to to the trash",
		Long: `Move blobs to the store's trash that no message of any context refers to, and that nobody wanted for the grace period. Where a
message cannot be read nothing is moved, since it may refer to any of them.`,
		Example: `  ctxtool gc --dry-run`,
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if after < 0 {
				return usage(cmd, "--grace: a time from 0 on")
			}
			return a.withStore(func(s *ctxdir.Store) error { return a.gc(cmd.Context(), s, after, dryRun) })
		},
	}
	cmd.Flags().DurationVar(&after, "grace", grace, "the grace period, as in 168h")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and change nothing")
	return cmd
}

func (a *app) gc(ctx context.Context, s *ctxdir.Store, after time.Duration, dryRun bool) error {
	n, size := 0, int64(0)
	for t, err := range s.Sweep(ctx, after, dryRun) {
		if err != nil {
			return err
		}
		n, size = n+1, size+t.Bytes
		if a.json {
			err = a.record(sweptRecord{"trashed", t.Path, t.Bytes, t.Reason, dryRun})
		} else {
			err = a.printf("%s  %s\n", t.Path, humanSize(t.Bytes))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case a.json:
		return a.record(summaryRecord{Record: "summary", Contexts: 0, Findings: n, ByKind: map[string]int{"blob": n}})
	case dryRun:
		a.note("%s, %s, would go to the trash", plural(n, "blob", "blobs"), humanSize(size))
	default:
		a.note("%s, %s, in the trash", plural(n, "blob", "blobs"), humanSize(size))
	}
	return nil
}
