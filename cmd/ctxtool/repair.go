package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type repairedRecord struct {
	Record  string `json:"record"`
	Context string `json:"context"`
	Kind    string `json:"kind"`
	Path    string `json:"path,omitempty"`
	ID      string `json:"id,omitempty"`
	Detail  string `json:"detail"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func (a *app) repairCmd() *cobra.Command {
	var o ctxdir.RepairOptions
	var from string
	cmd := &cobra.Command{
		Use:   "repair [CONTEXT…]",
		Short: "Repair what check finds",
		Long: `Read every message, repair what is damaged, and keep in the trash a copy of everything that is
replaced. repair recreates message files from committed messages. If a log or segment is damaged,
it recovers its messages from their files. A message without an intact copy stays unavailable, and
keeps its position. repair commits messages that were edited by hand. It leaves alone valid message
files that were added by hand, unless --adopt is given. Without CONTEXT, repair every context of
the store. A second run changes nothing. --from first takes messages that are damaged or lost from
another store: see ctxtool sync.`,
		Example:           "  ctxtool repair --dry-run\n  ctxtool repair 7c2f\n  ctxtool sync --to ~/copy\n  ctxtool repair --from ~/copy",
		Annotations:       exits("some problems remain", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
	}
	a.dryRunFlag(cmd)
	cmd.Flags().StringVar(&from, "from", "", "take messages that are damaged or lost from the store `PEER`")
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "commit valid message files that were added by hand")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var before []ctxdir.Finding
		repair := a.onStore(func(ctx context.Context, s *ctxdir.Store, args []string) (err error) {
			if o.Contexts, o.All, err = selectContexts(s, args); err != nil {
				return err
			}
			o.DryRun = a.dryRun
			if from != "" {
				return a.repairFrom(ctx, s, from, o, before)
			}
			return a.repair(ctx, s, o, before)
		})
		err := repair(cmd, args)
		if storeDamaged(err) {
			if before, err = a.repairStore(); err == nil {
				err = repair(cmd, args)
			}
		}
		return err
	}
	return cmd
}

// repairStore rewrites an unusable ctxdir.json: without it no store opens.
func (a *app) repairStore() ([]ctxdir.Finding, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	return ctxdir.RepairStore(path, a.options()...)
}

// repairFrom takes damaged and lost messages from a peer, and repairs the rest. A context that cannot be read is repaired first.
func (a *app) repairFrom(
	ctx context.Context, s *ctxdir.Store, from string, o ctxdir.RepairOptions, before []ctxdir.Finding,
) error {
	remotes, err := remotesOf(s, from)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx, remotes[0], &replica.Options{Heal: true})
	if err != nil {
		return err
	}
	var again []uuid.UUID
	heal := func(contexts []uuid.UUID, failed func(id uuid.UUID, err error)) error {
		var printed error
		_, err := replica.Sync(ctx, replica.NewFolder(s), c.peer, replica.Options{
			Heal: true, Contexts: contexts, DryRun: a.dryRun, Report: func(r replica.Synced) {
				if r.Err != nil {
					failed(r.ID, r.Err)
					return
				}
				x := repairedRecord{
					"repaired", r.ID.String(), "message", "", "", plain.Count(r.Healed, "message") + " taken from " + from, a.dryRun,
				}
				if err := a.result(x, "message  %s: %s", r.ID, x.Detail); err != nil && printed == nil {
					printed = err
				}
			},
		})
		return errors.Join(err, printed)
	}
	err = heal(o.Contexts, func(id uuid.UUID, _ error) { again = append(again, id) })
	if err == nil {
		err = a.repair(ctx, s, o, before)
	}
	if len(again) > 0 && !a.dryRun && ctx.Err() == nil {
		herr := heal(again, func(id uuid.UUID, err error) { a.warn(errorRecord{Error: fmt.Sprintf("context %s: %v", id, err)}) })
		err = errors.Join(err, herr)
	}
	return closeAfter(c.end, err)
}

// repair prints the repairs that were done before, repairs contexts and prints a summary.
func (a *app) repair(ctx context.Context, s *ctxdir.Store, o ctxdir.RepairOptions, before []ctxdir.Finding) error {
	v := a.newSurvey("Repairing", s, o.Contexts)
	print := func(r ctxdir.Finding) error {
		r.Severity, r.Repairable = "", false
		return v.print(r, repairedRecord{"repaired", record.ID(r.Context), string(r.Kind), r.Path, record.ID(r.ID), r.Detail, a.dryRun})
	}
	for _, r := range before {
		if err := print(r); err != nil {
			return err
		}
	}
	o.Progress = v.progress
	failed := 0
	if len(o.Contexts) != 1 {
		o.Failed = func(err error) {
			v.bar.Clear()
			failed++
			a.warnOf(err)
		}
	}
	err := withReport(ctx, print, func(ctx context.Context, report func(ctxdir.Finding)) error {
		o.Report = report
		_, err := s.Repair(ctx, o)
		return err
	})
	if err != nil {
		v.bar.Clear()
		return err
	}
	verb := "made"
	if a.dryRun {
		verb = "would make"
	}
	if err := v.end("%s %s in %s", verb, plain.Count(v.count, "repair"), plain.Count(v.last.Contexts, "context")); err != nil {
		return err
	}
	if failed > 0 {
		return failures("repair", failed, v.last.Contexts)
	}
	if v.last.Left > 0 {
		return problems(`run "ctxtool check --read-data" for details`, "%s cannot be repaired", plain.Count(v.last.Left, "problem"))
	}
	return nil
}
