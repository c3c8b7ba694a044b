package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/attach"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// eachMessage calls f for the messages at the positions [from, to) of a branch. A negative from counts from the end.
// Memory stays bounded.
func eachMessage(ctx context.Context, b *ctxdir.Branch, from, to int64, f func(m *ctxdir.Message) error) error {
	n, err := b.Len(ctx)
	if err != nil {
		return err
	}
	if from < 0 {
		from = max(n+from, 0)
	}
	for m, err := range b.Messages(ctx, from, min(to, n)) {
		if err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// content is how much of a message a verb reads.
func (a *app) content(none bool) record.Content {
	switch {
	case none:
		return record.None
	case a.json:
		return record.Full
	}
	return record.Texts
}

// messagePrinter returns a function that prints a message, as a record or for people, and one to call after the last.
func (a *app) messagePrinter(
	ctx context.Context, c *ctxdir.Context, branch string, f *showFlags,
) (print func(m *record.Loaded) error, flush func() error) {
	if a.json {
		return func(m *record.Loaded) error {
			return m.Write(ctx, a.out, m.Head(branch))
		}, func() error { return nil }
	}
	r := a.newRenderer(f.full)
	r.headsOnly, r.tools = f.noContent, cmp.Or(f.tools, r.tools)
	// A damaged branch does not prevent showing another one.
	if all, err := c.Branches(ctx); err == nil {
		r.forks = forksOff(all, branch)
	}
	first := func(m *record.Loaded) {
		if r.forked < 0 {
			r.forked = m.Position
		}
	}
	r.forked = -1
	if f.noContent {
		return func(m *record.Loaded) error { first(m); return r.message(m) }, func() error { return nil }
	}
	v := f.reader(r.turn)
	return func(m *record.Loaded) error { first(m); return v.Add(m) }, func() error {
		err := v.Flush()
		if err == nil && v.LeftOut > 0 {
			a.note("left out %s of bookkeeping; show them with --all", plain.Count(v.LeftOut, "record"))
		}
		return err
	}
}

type showFlags struct {
	branch, span string
	last         int64
	from, to     int64
	noContent    bool
	full         bool
	all          bool
	tools        string
	role, typ    string
	save         string
}

func (a *app) show(ctx context.Context, c *ctxdir.Context, f *showFlags, from, to int64) error {
	b, err := branchOf(c, f.branch)
	if err == nil && from < 0 {
		from, to, err = f.lastShown(ctx, b, -from, a.json)
	}
	if err != nil {
		return err
	}
	a.page()
	print, flush := a.messagePrinter(ctx, c, b.Name(), f)
	shown := 0
	var lacks incompleteCount
	var files *attach.Saver
	if f.save != "" {
		if files, err = attach.NewSaver(f.save); err != nil {
			return err
		}
		defer files.Close() //nolint:errcheck // a folder
	}
	err = eachMessage(ctx, b, from, to, func(m *ctxdir.Message) error {
		if !f.wants(m) {
			return nil
		}
		shown++
		s, err := record.Load(ctx, m, a.content(f.noContent))
		if err != nil {
			return err
		}
		if files != nil {
			if err := files.Message(ctx, m); err != nil {
				return err
			}
		}
		err = print(s)
		lacks.add(s)
		return err
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = lacks.err(c.ID())
	}
	switch {
	case err != nil:
		return err
	case files != nil:
		a.note("saved %s in %s", plain.Count(files.Saved, "file"), f.save)
	case shown == 0 && !a.json:
		n, _ := b.Len(ctx)
		a.note("no messages to show: the branch has %s", plain.Count(n, "message"))
	}
	return problemOf(c)
}

// wants reports whether a message has the role and the type to show.
func (f *showFlags) wants(m *ctxdir.Message) bool {
	voice := transcript.Voice(f.role)
	role := f.role == "" || strings.EqualFold(m.Role, f.role) || voice != "" && transcript.Voice(m.Role) == voice
	return role && (f.typ == "" || m.Type == f.typ)
}
