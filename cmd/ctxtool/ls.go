package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

var orderNames = []string{
	string(ctxdir.OrderUpdated), string(ctxdir.OrderCreated), string(ctxdir.OrderSize), string(ctxdir.OrderTitle),
}

type lsFlags struct {
	options      ctxdir.ListOptions
	labels       labelFlags
	since, until string
	project      string
	full, long   bool
	format       string
	template     *template.Template // nil: a table
}

func (a *app) lsCmd() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the contexts of the store",
		Long: `List the contexts of the store, most recently changed first. A row shows the
shortest unique prefix of the id (at least eight characters), the title, the number of branches and
messages, and the size. A context with a problem shows the problem.

A context must meet all conditions. Contexts with a kind are listed only with --kind. T is a time in
RFC 3339, a date, or a duration before now, such as 48h. After a list that --limit cut, --json prints
a cursor, and --cursor continues there.

--format prints a Go template for each context. It has .ID .Short .Title .Project .Labels .Kind
.ExternalID .Model .Tool .Branches .ActiveBranch .Messages .Bytes .CreatedAt .UpdatedAt .Problem,
.Label "KEY", and the functions json, size, ago and date.`,
		Example: `  ctxtool ls --limit 10
  ctxtool ls --label user=ada --since 48h
  ctxtool ls --kind '*' --sort size
  ctxtool ls --format '{{.Short}}\t{{size .Bytes}}\t{{.Title}}'`,
		Annotations: exits("a context has a problem", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.parse(cmd); err != nil {
				return err
			}
			list := func(ctx context.Context, s *ctxdir.Store, _ []string) error { return a.list(ctx, s, &f) }
			err := a.onStore(list)(cmd, args)
			if storeDamaged(err) {
				err = a.onStore(list, ctxdir.Options{ReadOnly: true})(cmd, args)
			}
			return err
		},
	}
	flags, o := cmd.Flags(), &f.options
	flags.IntVar(&o.Limit, "limit", 0, "list at most `N` contexts")
	flags.StringVar((*string)(&o.Order), "sort", string(ctxdir.OrderUpdated), "sort by `ORDER`: "+strings.Join(orderNames, ", "))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orderNames, cobra.ShellCompDirectiveNoFileComp))
	f.labels.add(cmd, "list contexts with the label `KEY=VALUE`; can be repeated")
	flags.StringVar(&o.Kind, "kind", "", "list contexts of the kind `KIND`, * for all")
	flags.StringVar(&o.Title, "title", "", "list contexts with a title like `GLOB`, in any case")
	flags.StringVar(&o.Model, "model", "", "list contexts with the model `MODEL`")
	flags.StringVar(&o.Tool, "tool", "", "list contexts with the label tool=`TOOL`")
	flags.StringVar(&f.project, "project", "", "list contexts of the folder `PROJECT`, a path or its end")
	flags.BoolVar(&o.Reverse, "reverse", false, "list in the opposite order")
	flags.BoolVarP(&f.long, "long", "l", false, "show tool, model, project, and exact times, as far as they fit")
	flags.StringVar(&f.since, "since", "", "list contexts changed at `T` or later")
	flags.StringVar(&f.until, "until", "", "list contexts changed before `T`")
	flags.StringVar(&o.Cursor, "cursor", "", "continue the list that ended with the cursor `C`")
	flags.StringVar(&f.format, "format", "", "print `TEMPLATE` for each context")
	flags.BoolVar(&f.full, "full", false, "show full ids, and labels")
	return cmd
}

func (f *lsFlags) parse(cmd *cobra.Command) (err error) {
	if !slices.Contains(orderNames, string(f.options.Order)) {
		return usage(cmd, "--sort: unknown order %q; use one of: %s", f.options.Order, strings.Join(orderNames, ", "))
	}
	if f.options.Limit < 0 || cmd.Flags().Changed("limit") && f.options.Limit == 0 {
		return usage(cmd, "--limit must be positive")
	}
	if f.options.Labels, err = f.labels.parse(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed("format") {
		if cmd.Flags().Changed("json") {
			return usage(cmd, "--format and --json cannot be used together")
		}
		if f.template, err = parseListFormat(cmd, f.format); err != nil {
			return err
		}
	}
	if f.options.Since, err = parseTime(cmd, "--since", f.since); err != nil {
		return err
	}
	f.options.Until, err = parseTime(cmd, "--until", f.until)
	return err
}

func (a *app) list(ctx context.Context, s *ctxdir.Store, f *lsFlags) error {
	o := f.options
	if o.Limit > 0 {
		o.Limit++ // whether the list goes on
	}
	if f.project != "" {
		o.Limit = 0 // of those in the project
	}
	all, err := listAll(ctx, s, o)
	if err != nil {
		return err
	}
	if f.project != "" {
		p, err := projectOf(ctx, s, f.project)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(s ctxdir.Summary) bool { return !p.has(s.Labels, isIn) })
	}
	next := ""
	if limit := f.options.Limit; limit > 0 && len(all) > limit {
		all = all[:limit]
		next = all[limit-1].Cursor
	}
	if err := a.printList(s, all, f); err != nil {
		return err
	}
	if next != "" {
		if a.json {
			err = a.record(cursorRecord{"cursor", next})
		} else {
			a.detail("listed %s; continue with --cursor %s", plain.Count(len(all), "context"), next)
		}
	}
	if err != nil {
		return err
	}
	return listProblems(all)
}

// filters reports whether a list leaves out contexts by more than their kind.
func (f *lsFlags) filters() bool {
	o := f.options
	return len(o.Labels) > 0 || f.project+o.Kind+o.Title+o.Model+o.Tool+o.Cursor != "" || !o.Since.IsZero() || !o.Until.IsZero()
}

func (a *app) printList(s *ctxdir.Store, all []ctxdir.Summary, f *lsFlags) error {
	if len(all) == 0 && !a.json {
		if f.filters() {
			a.note("no context matches")
			return nil
		}
		a.note(`no contexts yet; run "ctxtool new" to create one, or "ctxtool import" to import histories`)
		return nil
	}
	if f.template != nil {
		return a.printFormat(s, all, f.template)
	}
	a.page()
	t := term.Table{
		Head: []string{"ID", "TITLE", "BRANCHES", "MESSAGES", "SIZE", "UPDATED"}, Right: []int{2, 3, 4}, Shrink: []int{1},
		Keep: map[int]int{1: term.TitleWidth}, Drop: []int{2},
	}
	if f.long {
		t.Head = []string{"ID", "TITLE", "TOOL", "MODEL", "PROJECT", "BRANCHES", "MESSAGES", "SIZE", "CREATED", "UPDATED"}
		t.Right, t.Shrink, t.Names = []int{5, 6, 7}, []int{1, 4, 3}, []int{3, 4}
		t.Keep, t.Drop = map[int]int{1: term.TitleWidth, 3: term.NameWidth, 4: term.NameWidth}, []int{8, 7, 5, 4, 3, 6, 2}
	}
	old := slices.ContainsFunc(all, func(s ctxdir.Summary) bool { return s.Legacy != "" })
	if old {
		t.Head = append(t.Head, "FORMAT")
	}
	if f.full {
		t.Head = append(t.Head, "LABELS")
	}
	problems := slices.ContainsFunc(all, func(s ctxdir.Summary) bool { return s.Problem != nil })
	if problems {
		t.Shrink, t.Keep[len(t.Head)] = append(t.Shrink, len(t.Head)), term.TitleWidth
		if !f.long {
			t.Drop = append(t.Drop, 4, 3)
		}
		t.Head = append(t.Head, "PROBLEM")
	}
	id := uuid.UUID.String
	if !f.full {
		id = shortIDsIn(s).of
	}
	for _, s := range all {
		row := []string{id(s.ID), s.Title}
		if f.long {
			row = append(row, s.Labels["tool"], s.Model, lastFolders(s.Labels["project"]))
		}
		row = append(row, plain.Number(int64(s.Branches)), plain.Number(s.Messages), plain.Size(s.Bytes))
		if f.long {
			row = append(row, plain.Minute(s.CreatedAt), plain.Minute(s.UpdatedAt))
		} else {
			row = append(row, plain.Ago(s.UpdatedAt))
		}
		if old {
			row = append(row, cmp.Or(s.Legacy, "ctxdir"))
		}
		if f.full {
			row = append(row, labelText(s.Labels))
		}
		if problems {
			row = append(row, strings.TrimPrefix(record.Problem(cause(s.Problem)), s.ID.String()+"/"))
		}
		t.Add(contextRecord(s), row...)
		if problems {
			t.Style(len(row)-1, term.Red)
		}
	}
	return a.printTable(&t)
}

// isIn reports whether a project is a folder, or ends with it: lists show the end of the path.
func isIn(project, folder string) bool {
	clean := func(path string) string { return strings.Trim(strings.ReplaceAll(path, `\`, "/"), "/") }
	project, folder = clean(project), clean(folder)
	return project == folder || folder != "" && strings.HasSuffix(project, "/"+folder)
}

// labelText is labels for people, in the order of their names.
func labelText(labels map[string]string) string {
	texts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, " ")
}
