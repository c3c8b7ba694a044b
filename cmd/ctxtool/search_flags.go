package main

import (
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/spf13/cobra"
)

type searchFlags struct {
	query        search.Query
	labels       labelFlags
	since, until string
	maxWait      time.Duration
	open         int
}

// add adds the flags for the conditions on messages, and for pages of what a verb lists.
func (f *searchFlags) add(a *app, cmd *cobra.Command, verb, what string) {
	flags, q := cmd.Flags(), &f.query
	a.branchFlag(cmd, &q.Branch, "branch", "only messages that `BRANCH` shows")
	flags.StringSliceVar(&q.Roles, "role", nil, "only messages of the role `ROLE`; can be repeated")
	flags.StringSliceVar(&q.Types, "type", nil, "only messages of the type `TYPE`; can be repeated")
	flags.StringVar(&q.Kind, "kind", "", "only contexts or branches of the kind `KIND`, * for all")
	f.labels.add(cmd, "only contexts with the label `KEY=VALUE`; can be repeated")
	flags.StringVar(&q.Project, "project", "", "only contexts with the label project=`NAME`")
	flags.StringVar(&f.since, "since", "", "only messages of `T` or later")
	flags.StringVar(&f.until, "until", "", "only messages before `T`")
	flags.BoolVar(&q.Removed, "removed", false, "also messages that no branch shows any more")
	flags.IntVar(&q.Limit, "limit", 20, verb+" at most `N` "+what)
	flags.StringVar(&q.Cursor, "cursor", "", "continue after the page that ended with the cursor `C`, which --json and -v print last")
	flags.DurationVar(&f.maxWait, "max-wait", 0, "bring the index up to date for at most `DURATION`; 0 for as long as it takes")
}

// parseConditions checks the flags that add added.
func (f *searchFlags) parseConditions(cmd *cobra.Command) (err error) {
	q := &f.query
	switch {
	case q.Limit <= 0:
		return usage(cmd, "--limit must be positive")
	case f.maxWait < 0:
		return usage(cmd, "--max-wait must not be negative")
	}
	if q.Labels, err = f.labels.parse(cmd); err != nil {
		return err
	}
	if q.Since, err = parseTime(cmd, "--since", f.since); err != nil {
		return err
	}
	q.Until, err = parseTime(cmd, "--until", f.until)
	return err
}

// within restricts the query to the contexts that the arguments name.
func (f *searchFlags) within(s *ctxdir.Store, refs []string) error {
	for _, ref := range refs {
		id, err := resolve(s, ref)
		if err != nil {
			return err
		}
		f.query.Contexts = append(f.query.Contexts, id)
	}
	return nil
}
