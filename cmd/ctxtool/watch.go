package main

import (
	"context"
	"fmt"
	"math"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type watchFlags struct {
	tail      int64
	from      uint64
	noContent bool
	full      bool
	noFollow  bool
}

func (a *app) watchCmd() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [CONTEXT]",
		Short: "Follow the changes of a context or the store",
		Long: `Print every change to a context, or to the whole store, as any process commits it: messages,
branches, metadata, created and removed contexts, and messages edited by hand. Stop with Ctrl-C.

With --json, "seq" is the sequence number of a commit. --from continues after such a number, and
shows every later commit exactly once. If some of these commits are missing or damaged, watch
prints one "resync" record instead. A message may appear shortly before it is durable.`,
		Example: `  ctxtool watch 7c2f --tail 5 --no-follow
  ctxtool --json watch 7c2f --from 12 --no-follow
  ctxtool watch --no-follow`,
		Annotations:       exits("some messages are unavailable or incomplete", ofStores...),
		Args:              between(0, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			since := cmd.Flags().Changed("from")
			switch {
			case since && cmd.Flags().Changed("tail"):
				return usage(cmd, "--from and --tail cannot be used together")
			case (since || cmd.Flags().Changed("tail")) && len(args) == 0:
				return usage(cmd, "--from and --tail require CONTEXT")
			case f.tail < 0:
				return usage(cmd, "--tail must not be negative")
			case len(args) == 0:
				return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
					w, err := s.Watch(cmd.Context())
					if err != nil {
						return err
					}
					return (&follower{a: a, f: &f, store: s}).run(cmd.Context(), w)
				}, ctxdir.Options{ReadOnly: true, MemoryLimit: maxParsedBody})
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return a.followContext(cmd.Context(), c, &f, since)
			}, ctxdir.Options{ReadOnly: true, MemoryLimit: maxParsedBody})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.tail, "tail", 0, "first show the last `N` messages of the active branch")
	flags.Uint64Var(&f.from, "from", 0, "continue after the commit with sequence number `SEQ`")
	flags.BoolVar(&f.noContent, "no-content", false, "show messages without their content")
	flags.BoolVar(&f.full, "full", false, "show thoughts, tool calls and results in full")
	flags.BoolVar(&f.noFollow, "no-follow", false, "print the changes until now, then exit")
	return cmd
}

// followContext follows one context. The changes begin where the messages of --tail end.
func (a *app) followContext(ctx context.Context, c *ctxdir.Context, f *watchFlags, since bool) error {
	p := &follower{a: a, f: f, only: c, last: branchKey{c.ID(), c.Active().Name()}}
	from := f.from
	if !since {
		var err error
		if err = c.Refresh(ctx); err == nil {
			sum := c.Summary()
			if from = sum.Sequence; from == 0 {
				err = sum.Problem
			}
		}
		if err == nil && f.tail > 0 {
			err = eachMessage(ctx, c.Active(), -f.tail, math.MaxInt64, func(m *ctxdir.Message) error {
				return p.message(ctx, &ctxdir.Event{
					Kind: ctxdir.EventMessage, Op: "tail", Context: c.ID(), Branch: c.Active().Name(), Message: m,
				})
			})
		}
		if err != nil {
			return err
		}
	}
	p.seq = &from
	w, err := c.Watch(ctx, from)
	if err != nil {
		return err
	}
	return p.run(ctx, w)
}

// follower prints events.
type follower struct {
	a     *app
	only  *ctxdir.Context // nil to follow all contexts
	f     *watchFlags
	seq   *uint64
	last  branchKey // of the last message
	lacks incompleteCount
	store *ctxdir.Store
	ids   shortIDs
}

// short is the short form of an id. The store's folder is read again for a new context.
func (p *follower) short(id uuid.UUID) string {
	if _, ok := p.ids[id]; !ok {
		p.ids = shortIDsIn(p.store)
	}
	return p.ids.of(id)
}

type branchKey struct {
	context uuid.UUID
	branch  string
}

// run prints events until the watcher ends, and closes it.
func (p *follower) run(ctx context.Context, w *ctxdir.Watcher) (err error) {
	defer func() { err = closeAfter(w.Close, err) }()
	a := p.a
	if err := p.ready(w); err != nil {
		return err
	}
	events := w.Events
	if p.f.noFollow {
		events = w.Pending
	}
	for e := range events(ctx) {
		if e.Kind == ctxdir.EventProblem {
			a.warnOf(e.Problem)
			continue
		}
		if err := p.print(ctx, &e); err != nil {
			return err
		}
		if err := a.out.Flush(); err != nil { // a reader may wait for it
			return err
		}
	}
	if ctx.Err() != nil {
		a.silent = true // a watch ends with an interrupt
		return ctx.Err()
	}
	id := uuid.Nil
	if p.only != nil {
		id = p.only.ID()
	}
	return p.lacks.err(id)
}

// ready announces that watch misses no change from now on.
func (p *follower) ready(w *ctxdir.Watcher) error {
	r := readyRecord{Record: "ready", Seq: p.seq, Polling: record.Problem(w.Polling)}
	if p.only != nil {
		r.Context = p.only.ID().String()
	}
	if p.a.json {
		if err := p.a.record(r); err != nil {
			return err
		}
	} else if r.Polling != "" {
		p.a.note("polling for changes, since notifications are not available: %s", r.Polling)
	}
	return p.a.out.Flush()
}

func (p *follower) print(ctx context.Context, e *ctxdir.Event) error {
	switch {
	case e.Kind == ctxdir.EventMessage:
		return p.message(ctx, e)
	case p.a.json:
		return record.WriteEvent(ctx, p.a.out, e, nil)
	}
	switch e.Kind {
	case ctxdir.EventBranch:
		return p.branch(e)
	case ctxdir.EventMetadata:
		return p.metadata(e)
	case ctxdir.EventResync:
		return p.resync(e)
	}
	return p.context(e)
}

func (p *follower) message(ctx context.Context, e *ctxdir.Event) error {
	m, err := record.Load(ctx, e.Message, p.a.content(p.f.noContent))
	if err != nil {
		return err
	}
	if p.a.json {
		err := record.WriteEvent(ctx, p.a.out, e, m)
		p.lacks.add(m)
		return err
	}
	p.lacks.add(m)
	if e.Op == "replaced" || e.Op == "edited" {
		if err := p.line(e, "%s message %d of %s:", e.Op, e.Message.Position, plain.OneLine(e.Branch)); err != nil {
			return err
		}
	} else if p.last != (branchKey{e.Context, e.Branch}) {
		if err := p.line(e, "%s", plain.OneLine(e.Branch)); err != nil {
			return err
		}
	}
	p.last = branchKey{e.Context, e.Branch}
	r := p.a.newRenderer(p.f.full)
	r.headsOnly = p.f.noContent
	if err := r.message(m); err != nil || r.headsOnly {
		return err
	}
	return p.a.printf("\n")
}

// line prints an event of a context for people.
func (p *follower) line(e *ctxdir.Event, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if p.only == nil {
		text = p.short(e.Context) + "  " + text
	}
	return p.a.printf("%s\n", p.a.out.Colours().Paint(term.Dim, "· "+text))
}

func (p *follower) branch(e *ctxdir.Event) error {
	info := ctxdir.BranchInfo{Name: e.Branch}
	if len(e.Branches) > 0 {
		info = e.Branches[0]
	}
	name := plain.OneLine(e.Branch)
	switch e.Op {
	case "created":
		if info.Parent != "" {
			return p.line(e, "new branch %s, from %s", name, forkPoint(info))
		}
		return p.line(e, "new branch %s", name)
	case "renamed":
		return p.line(e, "renamed branch %s to %s", plain.OneLine(e.Was), name)
	case "moved":
		return p.line(e, "rewound branch %s to %s", name, plain.Count(info.Base, "message"))
	}
	return p.line(e, "removed branch %s", name)
}

func (p *follower) metadata(e *ctxdir.Event) error {
	return p.line(e, "%s", changesOf(e))
}

func (p *follower) resync(e *ctxdir.Event) error {
	return p.line(e, "cannot list the changes since then; run %q to see the messages", "ctxtool show "+e.Context.String())
}

// context prints a created or removed context.
func (p *follower) context(e *ctxdir.Event) error {
	title := ""
	if e.Metadata != nil {
		title = e.Metadata.Title
	}
	if title != "" {
		title = ": " + plain.OneLine(title)
	}
	return p.line(e, "context %s%s", e.Op, title)
}
