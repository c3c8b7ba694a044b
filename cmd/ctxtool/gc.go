package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// collectedRecord is something that went to trash, or was purged from it.
type collectedRecord struct {
	Record  string `json:"record"`
	Context string `json:"context,omitempty"`
	Path    string `json:"path"` // in the store
	Bytes   int64  `json:"bytes"`
	Reason  string `json:"reason"`
	Item    string `json:"item,omitempty"`
	Kind    string `json:"kind,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func collectedRecordOf(t ctxdir.Item, purged, dryRun bool) collectedRecord {
	r := collectedRecord{
		Record: "trashed", Context: idText(t.Context), Path: t.Path, Bytes: t.Bytes, Reason: t.Reason, Item: idText(t.ID),
		Kind: t.Kind, DryRun: dryRun,
	}
	if purged {
		r.Record = "purged"
	}
	return r
}

func (a *app) gcCmd() *cobra.Command {
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "gc [CONTEXT…]",
		Short: "Move what nothing refers to to the trash, and purge what was there long enough",
		Long: `Move messages that no branch shows to the trash of their context, purge what has been in a trash for longer than the grace
period, and move blobs to the store's trash that no message refers to and that nobody wanted for as long. "ctxtool trash" lists what is
there and brings it back. With CONTEXT, only these contexts and their trash.

After verbs that write, this is done by itself once a day, for two seconds at most, with a grace period of a week; collected.jsonl in
the store says what was removed. --no-gc, or $CTXDIR_NO_GC, leaves it out.`,
		Example: `  ctxtool gc --dry-run
  ctxtool gc --grace 720h`,
		Annotations:       exits("something could not be collected", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if grace < 0 {
				return usage(cmd, "--grace: a time from 0 on")
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				ids, all, err := chosen(s, args)
				if err != nil {
					return err
				}
				return a.gc(cmd.Context(), s, ctxdir.CollectOptions{Contexts: ids, All: all, Grace: cmp.Or(grace, -1), DryRun: a.dryRun})
			})
		},
	}
	cmd.Flags().DurationVar(&grace, "grace", defaultGrace, "the grace period, as in 168h")
	a.dryRunFlag(cmd)
	return cmd
}

// defaultGrace is the grace period of [ctxdir.CollectOptions].
const defaultGrace = 7 * 24 * time.Hour

func (a *app) gc(ctx context.Context, s *ctxdir.Store, o ctxdir.CollectOptions) error {
	kinds := map[string]int{}
	contexts := map[uuid.UUID]bool{}
	failed, purged, size := 0, 0, int64(0)
	print := func(x ctxdir.Item) error {
		if x.Context != uuid.Nil {
			contexts[x.Context] = true
		}
		kinds[x.Kind]++
		if size += x.Bytes; x.Purged {
			purged++
		}
		return a.collected(x, x.Purged)
	}
	err := printing(ctx, print, func(ctx context.Context, report func(ctxdir.Item)) error {
		o.Report = report
		o.Failed = func(err error) {
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
		}
		_, err := s.Collect(ctx, o)
		return err
	})
	if err != nil {
		return err
	}
	n := 0
	for _, of := range kinds {
		n += of
	}
	would := ""
	if a.dryRun {
		would = "would be "
	}
	if a.json {
		if err := a.record(summaryRecord{Record: "summary", Contexts: len(contexts), Findings: n, ByKind: kinds}); err != nil {
			return err
		}
	} else {
		a.note("%s%d moved to the trash and %d purged, %s", would, n-purged, purged, humanSize(size))
	}
	if failed > 0 {
		return &problemsError{text: fmt.Sprintf("%s could not be collected", plural(failed, "thing", "things"))}
	}
	return nil
}

// collected tells of one thing.
func (a *app) collected(t ctxdir.Item, purged bool) error {
	r := collectedRecordOf(t, purged, a.dryRun)
	if a.json {
		return a.record(r)
	}
	return a.printf("%-7s  %9s  %s  %s\n", r.Record, humanSize(r.Bytes), r.Path, oneLine(r.Reason))
}
