package main

import (
	"context"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/spf13/cobra"
)

func (a *app) checkCmd() *cobra.Command {
	var o ctxdir.CheckOptions
	cmd := &cobra.Command{
		Use:   "check [CONTEXT…]",
		Short: "Verify the store",
		Long: `Verify logs, segments, metadata, message files and blobs against each other. check changes nothing,
and runs beside writers. It trusts files that look untouched; --read-data reads every byte. Without
CONTEXT, verify the whole store.`,
		Example:           "  ctxtool check --read-data\n  ctxtool check 7c2f",
		Annotations:       exits("found problems", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: a.onStore(func(ctx context.Context, s *ctxdir.Store, args []string) (err error) {
			if o.Contexts, o.All, err = selectContexts(s, args); err != nil {
				return err
			}
			return a.check(ctx, s, o)
		}, ctxdir.Options{ReadOnly: true}),
	}
	cmd.Flags().BoolVar(&o.ReadData, "read-data", false, "read every byte of messages and blobs")
	return cmd
}

func (a *app) check(ctx context.Context, s *ctxdir.Store, o ctxdir.CheckOptions) error {
	v := a.newSurvey("Checking", s, o.Contexts)
	o.Progress = v.progress
	found, unrepairable := 0, 0
	for f, err := range s.Check(ctx, o) {
		if err != nil {
			v.bar.Clear()
			return err
		}
		if f.Severity != "info" {
			found++
			if f.Kind == "legacy" {
				unrepairable++
			}
		}
		r := record.OfFinding(f)
		r.Record = "finding"
		if err := v.print(f, r); err != nil {
			return err
		}
	}
	err := v.end("checked %s in %s", plain.Count(v.last.Messages, "message"), plain.Count(v.last.Contexts, "context"))
	if err != nil || found == 0 {
		return err
	}
	advice := `run "ctxtool repair --dry-run" to see what repair would do`
	if unrepairable == found {
		advice = "legacy contexts cannot be repaired"
	}
	return problems(advice, "found %s", plain.Count(found, "problem"))
}
