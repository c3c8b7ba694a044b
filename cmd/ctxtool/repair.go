package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
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
	var o ctxdir.CheckOptions
	cmd := &cobra.Command{
		Use:   "repair [CONTEXT…]",
		Short: "Mend what check finds",
		Long: `Read every message, mend what is wrong, and keep a copy in the trash of whatever is replaced. Messages are rewritten from the
journal or another copy; one of which there is none is marked unavailable and stays listed. Valid message files that were
put there by hand are left alone, unless --adopt is given. Without CONTEXT, every context of the store. Doing it again does nothing.`,
		Example:           "  ctxtool repair --dry-run\n  ctxtool repair 7c2f",
		Annotations:       exits("something stays wrong", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var before []ctxdir.Finding
			repair := func(s *ctxdir.Store) error {
				var err error
				if o.Contexts, o.All, err = chosen(s, args); err != nil {
					return err
				}
				o.DryRun = a.dryRun
				return a.repair(cmd.Context(), s, o, before)
			}
			err := a.withStore(cmd.Context(), repair)
			if storeDamaged(err) {
				if before, err = a.repairStore(); err == nil {
					err = a.withStore(cmd.Context(), repair)
				}
			}
			return err
		},
	}
	a.dryRunFlag(cmd)
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "take in valid message files that were never committed")
	return cmd
}

// repairStore writes ctxdir.json again where it cannot be used: without it no store opens.
func (a *app) repairStore() ([]ctxdir.Finding, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	return ctxdir.RepairStore(path, a.options()...)
}

func (a *app) tellRepaired(r ctxdir.Finding) error {
	if a.json {
		return a.record(repairedRecord{"repaired", idText(r.Context), r.Kind, r.Path, idText(r.ID), r.Detail, a.dryRun})
	}
	return a.tell(told{kind: r.Kind, where: cmp.Or(r.Path, idText(r.Context)), detail: r.Detail})
}

func (a *app) repair(ctx context.Context, s *ctxdir.Store, o ctxdir.CheckOptions, before []ctxdir.Finding) error {
	bar := a.newProgress("Repairing")
	var last ctxdir.CheckProgress
	o.Progress = func(p ctxdir.CheckProgress) {
		last = p
		bar.steps("…"+ending(p.Context), p.Done, p.Of)
	}
	sum := checkedRecord{Record: "summary", ByKind: map[string]int{}}
	tell := func(r ctxdir.Finding) error {
		sum.Findings++
		sum.ByKind[r.Kind]++
		return a.tellRepaired(r)
	}
	for _, r := range before {
		if err := tell(r); err != nil {
			return err
		}
	}
	failed := 0
	if len(o.Contexts) != 1 {
		o.Failed = func(err error) {
			bar.clear()
			failed++
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
		}
	}
	err := printing(ctx, tell, func(ctx context.Context, report func(ctxdir.Finding)) error {
		o.Report = func(r ctxdir.Finding) {
			bar.clear()
			report(r)
		}
		_, err := s.Repair(ctx, o)
		return err
	})
	bar.clear()
	if err != nil {
		return err
	}
	sum.Contexts, sum.Messages = last.Contexts, last.Messages
	done := "mended"
	if a.dryRun {
		done = "to mend"
	}
	if err := a.summary(
		sum,
		"%s %s in %s",
		plural(sum.Findings, "thing", "things"),
		done,
		plural(sum.Contexts, "context", "contexts"),
	); err != nil {
		return err
	}
	if failed > 0 {
		return &problemsError{text: fmt.Sprintf("%d of %d contexts could not be repaired", failed, sum.Contexts)}
	}
	if last.Left > 0 {
		return &problemsError{
			text: plural(last.Left, "thing stays wrong", "things stay wrong"),
			hint: `"ctxtool check --read-data" lists them`,
		}
	}
	return nil
}
