package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// eventFields are what every record of an event has beside those of its kind.
type eventFields struct {
	Event   string `json:"event,omitempty"`
	Context string `json:"context"`
	Seq     uint64 `json:"seq,omitempty"`  // of the commit: for --from
	More    bool   `json:"more,omitempty"` // another event of the same commit follows
}

type readyRecord struct {
	Record  string  `json:"record"`
	Context string  `json:"context,omitempty"`
	Seq     *uint64 `json:"seq,omitempty"`
	Polling string  `json:"polling,omitempty"` // why it looks every so often
}

type branchEvent struct {
	branchRecord
	Was string `json:"was,omitempty"`
	eventFields
}

type messageEvent struct {
	messageRecord
	eventFields
}

type contextEvent struct {
	Record       string    `json:"record"`
	ID           string    `json:"id"`
	Title        string    `json:"title,omitempty"`
	Branches     int       `json:"branches,omitempty"`
	ActiveBranch string    `json:"active_branch,omitempty"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
	eventFields
}

type resyncRecord struct {
	Record   string         `json:"record"`
	Branches []branchRecord `json:"branches"`
	eventFields
}

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
		Short: "Follow a context, or all, as they are written by any process",
		Long: `Print what is committed to a context, or to all of the store, by any process, as it happens: messages, branches, metadata, contexts that
come and go, and messages that are edited by hand. It ends with Ctrl-C. --tail shows the last messages first. With --json what was
committed bears its number as "seq": --from goes on behind one, without a gap and without repeating anything. What is older than the
journals that are kept cannot be told: then there is one "resync" record. A message may be told shortly before it is durable.`,
		Example: `  ctxtool watch 7c2f --tail 5 --no-follow
  ctxtool --json watch 7c2f --from 12 --no-follow
  ctxtool watch --no-follow`,
		Annotations:       exits("some message is not available, or a part of it", ofStores...),
		Args:              between(0, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			since := cmd.Flags().Changed("from")
			switch {
			case since && cmd.Flags().Changed("tail"):
				return usage(cmd, "--from and --tail exclude each other")
			case (since || cmd.Flags().Changed("tail")) && len(args) == 0:
				return usage(cmd, "--from and --tail are for one CONTEXT")
			case f.tail < 0:
				return usage(cmd, "--tail: wanted a number from 0 on")
			case len(args) == 0:
				return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
					w, err := s.Watch(cmd.Context())
					return a.follow(cmd.Context(), &following{a: a, f: &f}, w, err)
				}, ctxdir.WithReadOnly(), ctxdir.WithMemoryLimit(transformed))
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				return a.followContext(cmd.Context(), c, &f, since)
			}, ctxdir.WithReadOnly(), ctxdir.WithMemoryLimit(transformed))
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.tail, "tail", 0, "show the last `N` messages of the active branch first")
	flags.Uint64Var(&f.from, "from", 0, "begin behind the commit of number `SEQ`")
	flags.BoolVar(&f.noContent, "no-content", false, "show what is known of the messages, without the messages")
	flags.BoolVar(&f.full, "full", false, "fold nothing: tool calls, results and thoughts in full")
	flags.BoolVar(&f.noFollow, "no-follow", false, "end when everything that happened until now is told")
	return cmd
}

// followContext follows one context. What --tail shows ends where what is told begins.
func (a *app) followContext(ctx context.Context, c *ctxdir.Context, f *watchFlags, since bool) error {
	p := &following{a: a, f: f, only: c, last: topic{c.ID(), c.Active().Name()}}
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
			err = each(ctx, c.Active(), -f.tail, math.MaxInt64, func(m *ctxdir.Message) error {
				return p.message(ctx, &ctxdir.Event{Context: c.ID(), Branch: c.Active().Name(), Message: m}, "tail")
			})
		}
		if err != nil {
			return err
		}
	}
	w, err := c.Watch(ctx, from)
	p.seq = &from
	return a.follow(ctx, p, w, err)
}

// following prints events.
type following struct {
	a    *app
	only *ctxdir.Context // the one that is followed; nil for all
	f    *watchFlags
	seq  *uint64
	last topic // of the message that was shown last
	lacking
}

// topic is where a message was said.
type topic struct {
	context uuid.UUID
	branch  string
}

func (a *app) follow(ctx context.Context, p *following, w *ctxdir.Watcher, err error) error {
	if err != nil {
		return err
	}
	return closing(w.Close, p.run(ctx, w))
}

func (p *following) run(ctx context.Context, w *ctxdir.Watcher) error {
	a := p.a
	if err := p.ready(w); err != nil {
		return err
	}
	events := w.Events
	if p.f.noFollow {
		events = w.Pending
	}
	for e, err := range events(ctx) {
		if err != nil {
			a.warn(errorRecord{Error: err.Error(), Hint: hint(err)})
			continue
		}
		if err := p.print(ctx, &e); err != nil {
			return err
		}
		if err := a.out.Flush(); err != nil { // somebody waits for it
			return err
		}
	}
	if ctx.Err() != nil {
		a.silent = true // that is how it ends
		return ctx.Err()
	}
	return p.err(uuid.Nil, "message is unavailable, or a part of it", "messages are unavailable, or parts of them")
}

// ready says that from now on nothing is missed.
func (p *following) ready(w *ctxdir.Watcher) error {
	r := readyRecord{Record: "ready", Seq: p.seq, Polling: problemText(w.Polling)}
	if p.only != nil {
		r.Context = p.only.ID().String()
	}
	if p.a.json {
		if err := p.a.record(r); err != nil {
			return err
		}
	} else if r.Polling != "" {
		p.a.note("looking every so often, since nothing says what changes: %s", r.Polling)
	}
	return p.a.out.Flush()
}

func (p *following) print(ctx context.Context, e *ctxdir.Event) error {
	switch e.Kind {
	case ctxdir.EventMessage:
		return p.message(ctx, e, e.Op)
	case ctxdir.EventBranch:
		return p.branch(e)
	case ctxdir.EventMetadata:
		return p.metadata(e)
	case ctxdir.EventResync:
		return p.resync(e)
	}
	return p.context(e)
}

func fieldsOf(e *ctxdir.Event, what string) eventFields {
	return eventFields{what, e.Context.String(), e.Seq, e.More}
}

func (p *following) message(ctx context.Context, e *ctxdir.Event, what string) error {
	m := &said{Message: e.Message}
	if !p.f.noContent {
		var err error
		if m, err = say(ctx, e.Message, !p.a.json); err != nil {
			return err
		}
	}
	if p.a.json {
		r := messageEvent{recordOf(m, e.Branch, p.f.noContent), fieldsOf(e, what)}
		err := p.a.messageRecord(ctx, m, r, &r.messageRecord)
		p.add(m)
		return err
	}
	p.add(m)
	if what == "replaced" || what == "edited" {
		if err := p.line(e, "message %d of %s was %s:", e.Message.Position, oneLine(e.Branch), what); err != nil {
			return err
		}
	} else if p.last != (topic{e.Context, e.Branch}) {
		if err := p.line(e, "%s", oneLine(e.Branch)); err != nil {
			return err
		}
	}
	p.last = topic{e.Context, e.Branch}
	r := p.a.newRenderer()
	r.headsOnly, r.full = p.f.noContent, p.f.full
	return r.message(m)
}

// line prints something about a context for people.
func (p *following) line(e *ctxdir.Event, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if p.only == nil {
		text = ending(e.Context) + "  " + text
	}
	return p.a.printf("%s\n", p.a.colours(p.a.out.w).paint(dim, "· "+text))
}

func (p *following) branch(e *ctxdir.Event) error {
	info := ctxdir.BranchInfo{Name: e.Branch}
	if len(e.Branches) > 0 {
		info = e.Branches[0]
	}
	if p.a.json {
		return p.a.record(branchEvent{branchRow(info), e.Was, fieldsOf(e, e.Op)})
	}
	name := oneLine(e.Branch)
	switch e.Op {
	case "created":
		if info.Parent != "" {
			return p.line(e, "new branch %s, from %s", name, forkedFrom(info))
		}
		return p.line(e, "new branch %s", name)
	case "renamed":
		return p.line(e, "branch %s is called %s now", oneLine(e.Was), name)
	case "moved":
		return p.line(e, "branch %s was rewound to %s", name, plural(int(info.Base), "message", "messages"))
	}
	return p.line(e, "branch %s was removed", name)
}

func (p *following) metadata(e *ctxdir.Event) error {
	if p.a.json {
		b := metadataLine(e.Metadata)
		fields := encode(fieldsOf(e, e.Op))
		return p.a.printf("%s,%s\n", b[:len(b)-1], fields[1:])
	}
	var changed []string
	if e.Before.Title != e.Metadata.Title {
		changed = append(changed, "the title is "+strconv.Quote(e.Metadata.Title)+" now")
	}
	if e.Before.ActiveBranch != e.Metadata.ActiveBranch {
		changed = append(changed, "the active branch is "+oneLine(e.Metadata.ActiveBranch)+" now")
	}
	if len(changed) == 0 {
		changed = append(changed, "metadata changed")
	}
	return p.line(e, "%s", strings.Join(changed, ", "))
}

func (p *following) resync(e *ctxdir.Event) error {
	if p.a.json {
		r := resyncRecord{Record: "resync", eventFields: fieldsOf(e, "")}
		for _, b := range e.Branches {
			r.Branches = append(r.Branches, branchRow(b))
		}
		return p.a.record(r)
	}
	return p.line(e, "what happened before cannot be told any more: %q shows it", "ctxtool show "+e.Context.String())
}

// context tells of a context that came or went.
func (p *following) context(e *ctxdir.Event) error {
	title := ""
	if e.Metadata != nil {
		title = e.Metadata.Title
	}
	if p.a.json {
		r := contextEvent{Record: "context", ID: e.Context.String(), Title: title, eventFields: fieldsOf(e, e.Op)}
		if m := e.Metadata; m != nil {
			r.Branches, r.ActiveBranch, r.CreatedAt, r.UpdatedAt = len(m.Branches), m.ActiveBranch, m.CreatedAt, m.UpdatedAt
		}
		return p.a.record(r)
	}
	if title != "" {
		title = ": " + oneLine(title)
	}
	return p.line(e, "context %s%s", e.Op, title)
}
