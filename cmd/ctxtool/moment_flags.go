package main

import (
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// momentFlags choose moments.
type momentFlags struct {
	types, tags []string
	relevance   float64
	limit       int
	maxTokens   int
	newest      bool
}

func (f *momentFlags) add(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.types, "type", nil, what+" moments of the type `TYPE`: "+strings.Join(momentTypes(), ", ")+"; can be repeated")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(momentTypes(), cobra.ShellCompDirectiveNoFileComp))
	flags.Float64Var(&f.relevance, "min-relevance", 0, what+" moments of at least this relevance, `R` from 0 to 1")
	flags.IntVar(&f.limit, "limit", 0, what+" at most `N` moments, the most relevant ones")
}

func momentTypes() (names []string) {
	for _, t := range moment.Types {
		names = append(names, string(t))
	}
	return names
}

// parse checks the flags.
func (f *momentFlags) parse(cmd *cobra.Command) (types []moment.Type, err error) {
	for _, name := range f.types {
		if !slices.Contains(moment.Types, moment.Type(name)) {
			return nil, usage(cmd, "--type: unknown type %q; use one of: %s", name, strings.Join(momentTypes(), ", "))
		}
		types = append(types, moment.Type(name))
	}
	switch {
	case !(f.relevance >= 0 && f.relevance <= 1):
		return nil, usage(cmd, "--min-relevance must be between 0 and 1")
	case f.maxTokens < 0 || cmd.Flags().Changed("max-tokens") && f.maxTokens == 0:
		return nil, usage(cmd, "--max-tokens must be positive")
	case f.limit < 0 || cmd.Flags().Changed("limit") && f.limit == 0:
		return nil, usage(cmd, "--limit must be positive")
	}
	return types, nil
}

type momentRecord struct {
	record.Moment
	DryRun bool `json:"dry_run,omitempty"`
}

func (a *app) momentRecord(m *moment.Moment) momentRecord {
	r := momentRecord{record.OfMoment(m), a.dryRun}
	r.Record = "moment"
	return r
}

// resolveAll resolves the contexts that arguments name.
func resolveAll(s *ctxdir.Store, refs []string) (ids []uuid.UUID, err error) {
	for _, ref := range refs {
		id, err := resolve(s, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
