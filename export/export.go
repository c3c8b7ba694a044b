// Package export writes the messages of a context as a file: HTML and Markdown for people, JSON Lines for programs, and
// the forms that providers take and other tools keep.
//
//	err := export.Branch(ctx, w, c, c.Active(), export.Options{Format: export.HTML})
//
// With [Options].Redact, secrets are replaced before a format sees a text: formats for people take only texts of package
// redact, which no other package can make. A file holds one message at a time in memory, and those that wait for results
// of tools.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/redact"
	"github.com/ctxdir/ctxdir/transcript"
)

// ErrOptions reports options that cannot be used.
var ErrOptions = errors.New("export: invalid options")

// Check reports options that cannot be used, as [ErrOptions].
func (o Options) Check() error {
	_, err := newWriter(io.Discard, o)
	return err
}

func newWriter(w io.Writer, o Options) (*writer, error) {
	x := &writer{w: w, o: o, form: newForm(o.Format, w, o.All)}
	switch o.Tools {
	case "":
		x.o.Tools = ToolsFull
	case ToolsNone, ToolsShort, ToolsFull:
	default:
		return nil, fmt.Errorf("%w: unknown form of tool calls %q", ErrOptions, o.Tools)
	}
	switch o.Format {
	case HTML:
		x.format = &htmlFormat{w: w, tools: x.o.Tools}
	case Markdown:
		x.format = &markdownFormat{w: w, tools: x.o.Tools}
	case JSONL:
	default:
		if x.form == nil {
			return nil, fmt.Errorf("%w: unknown format %q", ErrOptions, o.Format)
		}
		if o.Redact != nil {
			return nil, fmt.Errorf("%w: %s cannot be redacted", ErrOptions, o.Format)
		}
	}
	if o.Redact != nil {
		options := *o.Redact
		options.Found = nil
		if o.Found != nil {
			options.Found = func(text string, f redact.Finding) { o.Found(x.at, text, f) }
		}
		r, err := redact.New(options)
		if err != nil {
			return nil, errors.Join(ErrOptions, err)
		}
		x.redactor, x.quiet = r, r.Quiet()
	}
	x.reset()
	return x, nil
}

func (x *writer) reset() {
	x.reader = conversation.Reader{All: x.o.All, Read: true, Show: x.show}
}

// begin begins the file of a branch. Without the name of a branch, [writer.branch] begins each.
func (x *writer) begin(c *ctxdir.Metadata, branch string) error {
	if x.format == nil {
		return nil
	}
	return x.format.begin(x.redactor.Text(c.Title), c.ID.String(), x.redactor.Text(branch))
}

// branch begins the messages of another branch, from a position on: those before it are in the file.
func (x *writer) branch(name string, from int64) error {
	if x.format == nil {
		return nil
	}
	if err := x.reader.Flush(); err != nil {
		return err
	}
	x.reset()
	x.at = nil
	return x.format.branch(x.redactor.Text(name), from)
}

// message adds the next message. missing says why a part of it is not in the file; the file says so, too, if it is for
// people.
func (x *writer) message(ctx context.Context, m *ctxdir.Message) (missing, err error) {
	switch {
	case x.form != nil:
		l, err := record.Load(ctx, m, record.Full)
		if err == nil {
			l, err = l.InMemory(ctx)
		}
		if err != nil {
			return nil, err
		}
		l.Body = x.here(l.Body)
		return l.Missing, x.form.message(l)
	case x.format == nil:
		return x.line(ctx, m)
	}
	l, err := record.Load(ctx, m, record.Texts)
	if err != nil {
		return nil, err
	}
	return l.Missing, x.reader.Add(l)
}

// end ends the file.
func (x *writer) end() error {
	if x.form != nil {
		err := x.form.end()
		if lost := x.form.omitted(); err == nil && lost != (Omissions{}) && x.o.Omitted != nil {
			x.o.Omitted(lost)
		}
		return err
	}
	if x.format == nil {
		return nil
	}
	if err := x.reader.Flush(); err != nil {
		return err
	}
	return x.format.end()
}

// show writes a turn, after redaction.
func (x *writer) show(t *transcript.Turn[*record.Loaded]) error {
	x.at = t.Message.Message
	is := x.turnOf(t)
	return x.format.turn(&is)
}

// Branch writes a branch.
func Branch(ctx context.Context, w io.Writer, c *ctxdir.Context, b *ctxdir.Branch, o Options) error {
	x, err := newWriter(w, o)
	if err != nil {
		return err
	}
	messages := b.Messages(ctx, 0, ctxdir.End)
	if x.form != nil {
		return x.conversation(ctx, c, b, messages)
	}
	if err := x.begin(c.Metadata(), b.Name()); err != nil {
		return err
	}
	if err := x.messages(ctx, messages); err != nil {
		return err
	}
	return x.end()
}

// AllBranches writes every branch, each message once: after the first branch, the others from where they leave a branch
// before. Branches with a kind, such as that of moments, are left out. Of the forms of tools, only that of Claude Code
// holds several branches: those with records of Claude Code, and the active one.
func AllBranches(ctx context.Context, w io.Writer, c *ctxdir.Context, o Options) error {
	x, err := newWriter(w, o)
	if err != nil {
		return err
	}
	switch {
	case o.Format == ClaudeCode:
		return x.conversation(ctx, c, c.Active(), sessionMessages(ctx, c))
	case x.form != nil:
		return fmt.Errorf("%w: %s holds one branch", ErrOptions, o.Format)
	}
	all, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	if err := x.begin(c.Metadata(), ""); err != nil {
		return err
	}
	for _, info := range all { // a branch comes after the one that it shares its beginning with
		b, err := c.Branch(info.Name)
		if err != nil {
			return err
		}
		from := int64(0)
		if info.From != "" {
			from = info.Shared
		}
		if err := x.branch(info.Name, from); err != nil {
			return err
		}
		if err := x.messages(ctx, b.Messages(ctx, from, ctxdir.End)); err != nil {
			return err
		}
	}
	return x.end()
}

// conversation writes messages in the form of a provider or a tool, with the system prompt of a branch.
func (x *writer) conversation(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, messages iter.Seq2[*ctxdir.Message, error]) error {
	prompt, err := systemPrompt(ctx, b)
	if err != nil {
		return err
	}
	m := c.Metadata()
	if project := m.Labels[importer.LabelProject]; project != "" && x.o.Here != nil {
		m.Labels = maps.Clone(m.Labels)
		m.Labels[importer.LabelProject] = x.o.Here(project)
	}
	if err := x.form.begin(m, prompt); err != nil {
		return err
	}
	if err := x.messages(ctx, messages); err != nil {
		return err
	}
	return x.end()
}

// systemPrompt is the system prompt of a branch, "" if it is blank or no text.
func systemPrompt(ctx context.Context, b *ctxdir.Branch) (string, error) {
	value, err := b.SystemPrompt(ctx)
	var prompt string
	if err != nil || json.Unmarshal(value, &prompt) != nil || strings.TrimSpace(prompt) == "" {
		return "", err
	}
	return prompt, nil
}

func (x *writer) messages(ctx context.Context, messages iter.Seq2[*ctxdir.Message, error]) error {
	for m, err := range messages {
		if err != nil {
			return err
		}
		if x.o.Progress != nil {
			x.o.Progress(m)
		}
		missing, err := x.message(ctx, m)
		if err != nil {
			return err
		}
		if missing = cmp.Or(m.Unavailable, missing); missing != nil && x.o.Missing != nil {
			x.o.Missing(m, missing)
		}
	}
	return nil
}

// newForm returns the form of a format, nil if it has none.
func newForm(f Format, w io.Writer, all bool) form {
	switch f {
	case OpenAI:
		return newOpenAI(w, all)
	case Anthropic:
		return newAnthropic(w, all)
	case ClaudeCode:
		return newClaude(w, all)
	case Codex:
		return newCodex(w, all)
	case ChatGPT:
		return newChatGPT(w, all)
	}
	return nil
}
