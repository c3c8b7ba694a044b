package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/usage"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type listArgs struct {
	Title  string `json:"title,omitempty" jsonschema:"only titles like this, with * and ?"`
	All    bool   `json:"all,omitempty" jsonschema:"of every project"`
	Since  string `json:"since,omitempty" jsonschema:"changed on this day or later, as 2026-05-01"`
	Limit  int    `json:"limit,omitempty" jsonschema:"20 by default, at most 50"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of the answer before"`
}

type branchesArgs struct {
	Context string `json:"context" jsonschema:"id of the context"`
}

type filesArgs struct {
	Path   string `json:"path" jsonschema:"name or end of a path, with * and ?, such as store.go or docs/*.md"`
	All    bool   `json:"all,omitempty" jsonschema:"in every project"`
	Access string `json:"access,omitempty" jsonschema:"read, written or attached"`
	Limit  int    `json:"limit,omitempty" jsonschema:"20 by default, at most 50"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of the answer before"`
}

type usageArgs struct {
	By   string `json:"by,omitempty" jsonschema:"model, day, project or context; model by default"`
	Days int    `json:"days,omitempty" jsonschema:"of the last so many days; 30 by default"`
	All  bool   `json:"all,omitempty" jsonschema:"of every project"`
}

func (l *library) addListing(s *sdk.Server) {
	addTool(s, &sdk.Tool{
		Name: "list", Annotations: readOnly("List conversations"),
		Description: "When you look for a conversation by its title or time, or want to know what there is: contexts, the newest first.",
	}, l.list)
	addTool(s, &sdk.Tool{
		Name: "branches", Annotations: readOnly("List branches"),
		Description: "When a context was tried in several ways: its branches, where they part, and how long they are.",
	}, l.branches)
	addTool(s, &sdk.Tool{
		Name: "files", Annotations: readOnly("Find what happened to files"),
		Description: "When you want to know what was said and done about a file: the messages that read, wrote or attached it, the newest first.",
	}, l.files)
	addTool(s, &sdk.Tool{
		Name: "usage", Annotations: readOnly("Sum up tokens and cost"),
		Description: "When the user asks how many tokens were used, or what it cost: sums by model, day, project or context.",
	}, l.usage)
}

func (l *library) list(ctx context.Context, _ *sdk.CallToolRequest, args listArgs) (*sdk.CallToolResult, any, error) {
	since, err := day(args.Since)
	if err != nil {
		return nil, nil, err
	}
	sc, err := l.scope(ctx, args.All)
	if nothing(err) {
		return said(err.Error()), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	a := newAnswer(0)
	next, most := "", limit(args.Limit, 20)
	for c, err := range l.store.List(ctx, ctxdir.ListOptions{Title: args.Title, Since: since, Cursor: args.Cursor}) {
		if err != nil {
			return nil, nil, err
		}
		if !sc.known(c.ID) {
			continue
		}
		if a.n == most {
			return a.end(-1, next), nil, nil
		}
		text := fmt.Sprintf("%s, %s", plain.Count(c.Messages, "message"), plain.Count(c.Branches, "branch"))
		if c.Model != "" {
			text += ", " + oneLine(c.Model, 80)
		}
		if project := c.Labels["project"]; project != "" && args.All {
			text += ", " + oneLine(project, 120)
		}
		q := quoted{
			context: c.ID, title: c.Title, tool: c.Labels["tool"], branch: c.ActiveBranch, position: -1, at: c.UpdatedAt, text: text,
		}
		if !a.add(&q) {
			return a.end(-1, next), nil, nil
		}
		next = c.Cursor
	}
	return a.end(-1, ""), nil, nil
}

func (l *library) branches(ctx context.Context, _ *sdk.CallToolRequest, args branchesArgs) (result *sdk.CallToolResult, _ any, err error) {
	err = l.context(ctx, args.Context, func(c *ctxdir.Context) error {
		all, err := c.Branches(ctx)
		if err != nil {
			return err
		}
		a := newAnswer(0)
		s := c.Summary()
		for _, b := range all {
			text := plain.Count(b.Messages, "message")
			if b.From != "" {
				text += fmt.Sprintf(", the first %d as on %s", b.Shared, b.From)
			}
			if b.Active {
				text += ", active"
			}
			if !a.add(&quoted{context: c.ID(), title: s.Title, tool: s.Labels["tool"], branch: b.Name, position: -1, text: text}) {
				break
			}
		}
		result = a.end(int64(len(all)), "")
		return nil
	})
	return result, nil, err
}

func (l *library) files(ctx context.Context, r *sdk.CallToolRequest, args filesArgs) (*sdk.CallToolResult, any, error) {
	switch {
	case args.Path == "":
		return nil, nil, errors.New("path is empty")
	case !slices.Contains([]string{"", search.Attached, search.Read, search.Written}, args.Access):
		return nil, nil, errors.New("access is not one of: read, written, attached")
	}
	x, err := l.indexed(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	sc, err := l.scope(ctx, args.All)
	if nothing(err) {
		return said(err.Error()), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	q := search.FileQuery{Access: args.Access, Query: search.Query{
		Path: args.Path, Contexts: sc.contexts, Except: sc.except, Limit: limit(args.Limit, 20), Cursor: args.Cursor,
	}}
	a := newAnswer(0)
	next := ""
	for row, err := range x.Files(ctx, q) {
		if err != nil {
			return nil, nil, err
		}
		branch := ""
		if len(row.Branches) > 0 {
			branch = row.Branches[0]
		}
		f := quoted{
			context: row.Context, title: row.Title, tool: row.Labels["tool"], branch: branch, position: row.Position, id: row.ID, role: row.Role,
			at: row.At, text: row.Access + " " + row.Path,
		}
		if !a.add(&f) {
			break
		}
		next = row.Cursor
	}
	if a.n < q.Limit && !a.over {
		next = ""
	}
	return a.end(-1, next), nil, nil
}

func (l *library) usage(ctx context.Context, r *sdk.CallToolRequest, args usageArgs) (*sdk.CallToolResult, any, error) {
	keys := map[string]usage.Key{
		"": usage.ByModel, "model": usage.ByModel, "day": usage.ByDay, "project": usage.ByProject, "context": usage.ByContext,
	}
	key, ok := keys[args.By]
	if !ok {
		return nil, nil, errors.New("by is not one of: model, day, project, context")
	}
	x, err := l.indexed(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	sc, err := l.scope(ctx, args.All)
	if nothing(err) {
		return said(err.Error()), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	days := args.Days
	if days <= 0 {
		days = 30
	}
	prices, _ := usage.PublishedPrices()
	report := usage.Report{
		By: key, From: time.Now().AddDate(0, 0, -min(days, 36500)), Zone: time.UTC, Charges: &usage.Charges{Lists: []usage.Prices{prices}},
	}
	counter := usage.NewCounter(l.store)
	counter.UseIndex(x)
	for c, err := range l.store.List(ctx, ctxdir.ListOptions{Since: report.From}) {
		if err != nil {
			return nil, nil, err
		}
		if !sc.known(c.ID) {
			continue
		}
		err = l.store.Use(ctx, c.ID, func(c *ctxdir.Context) error { return report.Add(ctx, counter, c) })
		if err != nil && ctx.Err() != nil {
			return nil, nil, err
		}
	}
	rows := report.Rows()
	a := newAnswer(0)
	for i, row := range rows {
		if i == pageSize {
			break
		}
		name := row.Key
		if row.Text != "" {
			name = row.Text
		}
		a.line(fmt.Sprintf("> %s: %s\n", oneLine(name, 100), sumText(&row.Sum)))
		a.n++
	}
	a.line(fmt.Sprintf("\nall, last %d days: %s\n", days, sumText(&report.Sum)))
	return a.end(int64(len(rows)), ""), nil, nil
}

// sumText is a sum in words.
func sumText(s *usage.Sum) string {
	parts := []string{plain.Count(s.Calls, "call"), plain.Short(s.Total) + " tokens"}
	if s.Cost > 0 {
		parts = append(parts, "$"+plain.Dollars(s.Cost))
	}
	return strings.Join(parts, ", ")
}
