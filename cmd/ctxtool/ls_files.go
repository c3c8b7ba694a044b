package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type filesSummary struct {
	Record string `json:"record"`
	Files  int    `json:"files"`
	Behind int64  `json:"behind"`
}

type pathsSummary struct {
	Record string `json:"record"`
	Paths  int    `json:"paths"`
	Behind int64  `json:"behind"`
}

type lsFilesFlags struct {
	searchFlags
	access, media     string
	text, binary, all bool
	count             bool
}

func (a *app) lsFilesCmd() *cobra.Command {
	var f lsFilesFlags
	cmd := &cobra.Command{
		Use:   "ls-files [CONTEXT…]",
		Short: "List the files attached to messages, and those that tools read or write",
		Long: `List the files attached to messages, and those that tool calls read or write, in the whole store or in
contexts, newest first. A row shows path, size, media type, kind of access, time, and the position
of the message. The size is that of the content in the message; a message that only names a file has
none. Each file is listed once for each context, at its last access; --all lists every access. --count
lists each path once, with the number of accesses, most accessed first.

--path compares a path, or its end after a slash, with a pattern. The list first brings the index of
"ctxtool search" up to date. "ctxtool files" lists the files of the store itself.`,
		Example: `  ctxtool ls-files --path '*.go' --access written
  ctxtool ls-files --count --access written --since 720h
  ctxtool ls-files --media 'image/*' --since 720h
  ctxtool ls-files 7c2f --query "lock test" --text`,
		Annotations:       exits("a context cannot be read", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: a.completeContexts(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.parse(cmd); err != nil {
				return err
			}
			list := func(ctx context.Context, s *ctxdir.Store, refs []string) error { return a.lsFiles(ctx, s, &f, refs) }
			return a.onStore(list)(cmd, args)
		},
	}
	flags, q := cmd.Flags(), &f.query
	flags.StringVar(&q.Path, "path", "", "only files with a path like `GLOB`")
	flags.StringVar(&f.access, "access", "", "only files that are `HOW`: attached, read or written")
	flags.StringVar(&f.media, "media", "", "only files with a media type like `GLOB`, - for an unknown one")
	flags.BoolVar(&f.text, "text", false, "only files that are text")
	flags.BoolVar(&f.binary, "binary", false, "only files that are not text")
	flags.BoolVar(&f.all, "all", false, "list a file every time that a message touches it, bookkeeping too")
	flags.BoolVar(&f.count, "count", false, "count how often messages touch each path, the most often touched first")
	flags.StringVar(&q.Text, "query", "", "only files of messages that `QUERY` finds; see \"ctxtool search\"")
	f.add(a, cmd, "list", "files")
	_ = cmd.RegisterFlagCompletionFunc("access", cobra.FixedCompletions(
		[]string{search.Attached, search.Read, search.Written}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *lsFilesFlags) parse(cmd *cobra.Command) error {
	switch f.access {
	case "", search.Attached, search.Read, search.Written:
	default:
		return usage(cmd, "--access: unknown value %q; use one of: attached, read, written", f.access)
	}
	if f.text && f.binary {
		return usage(cmd, "--text and --binary cannot be used together")
	}
	if f.count && (f.all || f.query.Cursor != "") {
		return usage(cmd, "--count cannot be used with --all or --cursor")
	}
	return f.parseConditions(cmd)
}

// fileQuery is the query of the flags.
func (f *lsFilesFlags) fileQuery() search.FileQuery {
	q := search.FileQuery{Query: f.query, Access: f.access, Type: f.media, Newest: !f.all && !f.count}
	q.Bookkeeping = f.all
	if f.text || f.binary {
		q.IsText = &f.text
	}
	return q
}

func (a *app) lsFiles(ctx context.Context, s *ctxdir.Store, f *lsFilesFlags, refs []string) error {
	if err := f.within(s, refs); err != nil {
		return err
	}
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	return closeAfter(x.Close, a.lsFilesIn(ctx, s, x, f))
}

func (a *app) lsFilesIn(ctx context.Context, s *ctxdir.Store, x *search.Index, f *lsFilesFlags) error {
	updated, err := a.updateIndex(ctx, x, search.UpdateOptions{MaxWait: f.maxWait})
	if err != nil {
		return err
	}
	if f.count {
		return errors.Join(a.countPaths(ctx, x, f, updated.Behind), a.notSearched(updated))
	}
	var rows []search.FileRow
	for row, err := range x.Files(ctx, f.fileQuery()) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 || a.json {
		if err := a.printFileRows(s, rows, f.query.Limit, updated.Behind); err != nil {
			return err
		}
	}
	return a.notSearched(updated)
}

// countPaths prints how often messages touch each path.
func (a *app) countPaths(ctx context.Context, x *search.Index, f *lsFilesFlags, behind int64) error {
	counts, err := x.CountPaths(ctx, f.fileQuery())
	if err != nil {
		return err
	}
	if a.json {
		for _, c := range counts {
			r := record.OfPathCount(c)
			r.Record = "path_count"
			if err := a.record(r); err != nil {
				return err
			}
		}
		return a.record(pathsSummary{"summary", len(counts), behind})
	}
	if len(counts) == 0 {
		return nil
	}
	a.page()
	t := term.Table{Head: []string{"TIMES", "CONTEXTS", "LAST", "PATH"}, Right: []int{0, 1}, Shrink: []int{3}, Ends: []int{3}}
	for _, c := range counts {
		t.Add(nil, fmt.Sprint(c.Times), fmt.Sprint(c.Contexts), c.Last.Local().Format(time.DateOnly), c.Path)
	}
	if len(counts) == f.query.Limit {
		a.detail("listed the first %s; --limit lists more", plain.Count(len(counts), "path"))
	}
	return a.printTable(&t)
}

func (a *app) printFileRows(s *ctxdir.Store, rows []search.FileRow, limit int, behind int64) error {
	if a.json {
		return a.fileRowRecords(rows, limit, behind)
	}
	a.page()
	if err := a.fileTable(s, rows); err != nil {
		return err
	}
	if len(rows) == limit {
		a.detail("listed %s; continue with --cursor %s", plain.Count(limit, "file"), rows[limit-1].Cursor)
	}
	return nil
}

// fileTable prints the rows for people, grouped by context in the order of the newest ones.
func (a *app) fileTable(s *ctxdir.Store, rows []search.FileRow) error {
	paint, short := a.out.Colours(), shortIDsIn(s)
	for i, group := range grouped(len(rows), func(i int) uuid.UUID { return rows[i].Context }) {
		if i > 0 {
			if err := a.printf("\n"); err != nil {
				return err
			}
		}
		first := &rows[group[0]]
		head := a.contextHead(paint, short, first.Context, first.Title, first.Labels)
		t := term.Table{Head: []string{"PATH", "SIZE", "ACCESS", "DATE", "#"}, Right: []int{1, 4}, Shrink: []int{0}, Ends: []int{0}, Bare: true}
		for _, i := range group {
			r := &rows[i]
			size := ""
			if r.Size >= 0 {
				size = plain.Size(r.Size)
			}
			path := strings.TrimPrefix(r.Path, cmp.Or(first.Labels["project"], "/")+"/") // relative to the project
			t.Add(nil, cmp.Or(path, r.Type, "(no name)"), size, r.Access, r.At.Local().Format(time.DateOnly), fmt.Sprint("#", r.Position))
			t.Style(2, map[string]string{search.Written: term.Yellow, search.Attached: term.Green}[r.Access])
			t.Style(4, term.Dim)
		}
		if err := a.printf("%s\n", head); err != nil {
			return err
		}
		if err := a.printTable(&t); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) fileRowRecords(rows []search.FileRow, limit int, behind int64) error {
	for i := range rows {
		r := record.OfFileRow(&rows[i])
		r.Record = "file_row"
		err := a.record(r)
		if err != nil {
			return err
		}
	}
	if len(rows) == limit {
		if err := a.record(cursorRecord{"cursor", rows[limit-1].Cursor}); err != nil {
			return err
		}
	}
	return a.record(filesSummary{"summary", len(rows), behind})
}
