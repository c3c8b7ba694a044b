// Package export writes the messages of a context as a file: HTML and Markdown for people, JSON Lines for programs.
//
//	err := export.Branch(ctx, w, c, c.Active(), export.Options{Format: export.HTML})
//
// With [Options].Redact, secrets are replaced before a format sees a text: formats take only texts of package redact,
// which no other package can make. A file holds one message at a time in memory, and for people those that wait for
// results of tools.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/redact"
	"github.com/ctxdir/ctxdir/transcript"
)

// Format is a form of file.
type Format string

// The formats. In HTML and Markdown, thoughts and tool calls with their results are folded. A page in HTML needs no
// other file: images are inside, and nothing in it runs. JSON Lines has each message verbatim.
const (
	HTML     Format = "html"
	Markdown Format = "markdown"
	JSONL    Format = "jsonl"
)

// Formats are all formats.
var Formats = []Format{HTML, Markdown, JSONL}

// The forms of tool calls in HTML and Markdown.
const (
	ToolsNone  = "none"
	ToolsShort = "short" // one line without results
	ToolsFull  = "full"
)

// Options say what a file has.
type Options struct {
	Format Format
	All    bool   // bookkeeping of agent tools, too; JSON Lines always has it
	Tools  string // one of the forms of tool calls; "" is [ToolsFull]
	// Redact says what to replace; nil replaces nothing. JSON Lines then keeps references to binary payloads: the content
	// of a file is not searched.
	Redact *redact.Options
	// Found is called for each finding, with the message at which the file shows it: nil for the title and names of
	// branches. It may be nil. [redact.Options].Found is not called.
	Found func(m *ctxdir.Message, text string, f redact.Finding)
	// Missing is called by [Branch] and [AllBranches] for each message that is not in the file completely; it may be nil.
	Missing func(m *ctxdir.Message, err error)
}

// ErrOptions reports options that cannot be used.
var ErrOptions = errors.New("export: invalid options")

// Writer writes one file: [Writer.Begin], then messages, then [Writer.End].
type Writer struct {
	w        io.Writer
	o        Options
	redactor *redact.Redactor // nil replaces nothing
	quiet    *redact.Redactor // for what is made of redacted texts
	format   format
	reader   conversation.Reader
	at       *ctxdir.Message
}

// format writes what people read. Its texts are those of package redact.
type format interface {
	begin(title redact.Text, id string, branch redact.Text) error
	branch(name redact.Text, from int64) error // which the next turns are of
	turn(t *turn) error
	end() error
}

// NewWriter returns a Writer to w. It fails with [ErrOptions].
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	x := &Writer{w: w, o: o}
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
		return nil, fmt.Errorf("%w: unknown format %q", ErrOptions, o.Format)
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

func (x *Writer) reset() {
	x.reader = conversation.Reader{All: x.o.All, Read: true, Show: x.show}
}

// Begin begins the file of a branch. Without the name of a branch, [Writer.Branch] begins each.
func (x *Writer) Begin(c *ctxdir.Metadata, branch string) error {
	if x.format == nil {
		return nil
	}
	return x.format.begin(x.redactor.Text(c.Title), c.ID.String(), x.redactor.Text(branch))
}

// Branch begins the messages of another branch, from a position on: those before it are in the file.
func (x *Writer) Branch(name string, from int64) error {
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

// Message adds the next message. missing says why a part of it is not in the file; the file says so, too, if it is for
// people.
func (x *Writer) Message(ctx context.Context, m *ctxdir.Message) (missing, err error) {
	if x.format == nil {
		return x.line(ctx, m)
	}
	l, err := record.Load(ctx, m, record.Texts)
	if err != nil {
		return nil, err
	}
	return l.Missing, x.reader.Add(l)
}

// End ends the file.
func (x *Writer) End() error {
	if x.format == nil {
		return nil
	}
	if err := x.reader.Flush(); err != nil {
		return err
	}
	return x.format.end()
}

// show writes a turn, after redaction.
func (x *Writer) show(t *transcript.Turn[*record.Loaded]) error {
	x.at = t.Message.Message
	is := x.turnOf(t)
	return x.format.turn(&is)
}

// Branch writes a branch.
func Branch(ctx context.Context, w io.Writer, c *ctxdir.Context, b *ctxdir.Branch, o Options) error {
	x, err := NewWriter(w, o)
	if err != nil {
		return err
	}
	if err := x.Begin(c.Metadata(), b.Name()); err != nil {
		return err
	}
	if err := x.messages(ctx, b, 0); err != nil {
		return err
	}
	return x.End()
}

// AllBranches writes every branch, each message once: after the first branch, the others from where they leave a branch
// before. Branches with a kind, such as that of moments, are left out.
func AllBranches(ctx context.Context, w io.Writer, c *ctxdir.Context, o Options) error {
	x, err := NewWriter(w, o)
	if err != nil {
		return err
	}
	all, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	if err := x.Begin(c.Metadata(), ""); err != nil {
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
		if err := x.Branch(info.Name, from); err != nil {
			return err
		}
		if err := x.messages(ctx, b, from); err != nil {
			return err
		}
	}
	return x.End()
}

func (x *Writer) messages(ctx context.Context, b *ctxdir.Branch, from int64) error {
	for m, err := range b.Messages(ctx, from, ctxdir.End) {
		if err != nil {
			return err
		}
		missing, err := x.Message(ctx, m)
		if err != nil {
			return err
		}
		if missing = cmp.Or(m.Unavailable, missing); missing != nil && x.o.Missing != nil {
			x.o.Missing(m, missing)
		}
	}
	return nil
}

// text is a text of a message after redaction. One that is JSON stays JSON.
func (x *Writer) text(text string) redact.Text {
	if begin := strings.TrimLeft(text, " \t\r\n"); begin != "" && (begin[0] == '{' || begin[0] == '[') {
		return x.redactor.JSON([]byte(text))
	}
	return x.redactor.Text(text)
}
