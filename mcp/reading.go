package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type recallArgs struct {
	Question  string `json:"question" jsonschema:"what to find out, as a whole question with the names and words that matter"`
	All       bool   `json:"all,omitempty" jsonschema:"look at every project, not only at the current one"`
	Tools     bool   `json:"tools,omitempty" jsonschema:"also what models thought, called and got from tools: for output and code"`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema:"size of the answer, 4000 by default"`
}

type searchArgs struct {
	Query  string `json:"query" jsonschema:"words; \"a phrase\"; -without; begin*; OR"`
	All    bool   `json:"all,omitempty" jsonschema:"look at every project"`
	Tools  bool   `json:"tools,omitempty" jsonschema:"also what tools answered"`
	Since  string `json:"since,omitempty" jsonschema:"of this day or later, as 2026-05-01"`
	Limit  int    `json:"limit,omitempty" jsonschema:"10 by default, at most 50"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of the answer before"`
}

type readArgs struct {
	Context   string `json:"context" jsonschema:"id of the context, or an unambiguous part of it"`
	Branch    string `json:"branch,omitempty" jsonschema:"the active one by default"`
	Around    string `json:"around,omitempty" jsonschema:"position or id of a message: it and those beside it"`
	From      *int64 `json:"from,omitempty" jsonschema:"position of the first message"`
	To        *int64 `json:"to,omitempty" jsonschema:"position after the last one"`
	Last      int64  `json:"last,omitempty" jsonschema:"the last so many messages; 10 by default"`
	Tools     bool   `json:"tools,omitempty" jsonschema:"also what tools answered"`
	Whole     bool   `json:"whole,omitempty" jsonschema:"do not cut messages at 2000 characters"`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema:"size of the answer, 4000 by default"`
}

func (l *library) addReading(s *sdk.Server) {
	addTool(s, &sdk.Tool{
		Name: "recall", Annotations: readOnly("Recall earlier conversations"),
		Description: "When the user refers to earlier work, or an answer may have been found before (a decision, a port, a command, the cause " +
			"of an error): the passages of earlier conversations that answer a question, within a budget of tokens.",
	}, l.recall)
	addTool(s, &sdk.Tool{
		Name: "search", Annotations: readOnly("Search messages"),
		Description: "When you know words that were used, or recall did not suffice: messages with these words, best first, with their places.",
	}, l.search)
	addTool(s, &sdk.Tool{
		Name: "read", Annotations: readOnly("Read messages"),
		Description: "When a passage is not enough: messages of a context in order, around one, in a range, or the last ones.",
	}, l.read)
}

func (l *library) recall(ctx context.Context, r *sdk.CallToolRequest, args recallArgs) (*sdk.CallToolResult, any, error) {
	if args.Question == "" {
		return nil, nil, errors.New("question is empty")
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
	a := newAnswer(args.MaxTokens)
	built, err := assemble.Build(ctx, l.store, assemble.Request{
		Query: args.Question, MaxTokens: a.left - a.left/8, All: true, Contexts: sc.contexts, Except: sc.except, Index: x,
		Speech: !args.Tools, PerText: maxMessage - maxMessage/20, // with the marks of gaps no more than maxMessage
	})
	if err != nil {
		return nil, nil, err
	}
	found, err := l.recallMoments(ctx, x, &sc, a, args.Question)
	if err != nil {
		return nil, nil, err
	}
	for i := range built.Items {
		item := &built.Items[i]
		if item.Kind == assemble.Instructions || !sc.known(item.Context) {
			continue
		}
		found++
		q := quoted{
			context: item.Context, title: item.Title, branch: item.Branch, position: item.Position, id: item.ID, role: item.Role, at: item.At,
			text: item.Text,
		}
		l.describe(ctx, &q)
		a.add(&q)
	}
	if found == 0 {
		a.line("\nNothing was found. Ask with other words, with tools=true or all=true, or use search.\n")
	}
	return a.end(int64(found), ""), nil, nil
}

// mostMoments is how many moments an answer begins with.
const mostMoments = 5

// recallMoments adds the decisions and facts that were noted, by people or agents.
func (l *library) recallMoments(ctx context.Context, x *search.Index, sc *scope, a *answer, question string) (found int, err error) {
	q := search.Query{Text: question, Kind: moment.Kind, Contexts: sc.contexts, Except: sc.except, Limit: mostMoments}
	for hit, err := range x.Search(ctx, q) {
		if err != nil {
			return found, err
		}
		found++
		a.add(&quoted{
			context: hit.Context, title: hit.Title, tool: hit.Labels["tool"], branch: moment.Kind, position: -1, id: hit.ID, role: hit.Type,
			at: hit.At, text: hit.Snippet,
		})
	}
	return found, nil
}

// describe adds what the context of a quotation says about it.
func (l *library) describe(ctx context.Context, q *quoted) {
	_ = l.store.Use(ctx, q.context, func(c *ctxdir.Context) error { // a context that is gone has no description
		m := c.Metadata()
		q.tool, q.note = m.Labels["tool"], subAgent(m.ParentID)
		return nil
	})
}

func (l *library) search(ctx context.Context, r *sdk.CallToolRequest, args searchArgs) (*sdk.CallToolResult, any, error) {
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
	q := search.Query{Text: args.Query, Contexts: sc.contexts, Except: sc.except, Limit: limit(args.Limit, 10), Cursor: args.Cursor}
	if !args.Tools {
		q.Roles = []string{"user", "assistant", "system"}
	}
	if q.Since, err = day(args.Since); err != nil {
		return nil, nil, err
	}
	a := newAnswer(0)
	next := ""
	for hit, err := range x.Search(ctx, q) {
		if err != nil {
			return nil, nil, err
		}
		branch := ""
		if len(hit.Branches) > 0 {
			branch = hit.Branches[0]
		}
		line := quoted{
			context: hit.Context, title: hit.Title, branch: branch, position: hit.Position, id: hit.ID, role: hit.Role, at: hit.At,
			text: hit.Snippet, tool: hit.Labels["tool"],
		}
		l.describe(ctx, &line)
		if !a.add(&line) {
			break
		}
		next = hit.Cursor
	}
	if a.n < q.Limit && !a.over {
		next = ""
	}
	return a.end(-1, next), nil, nil
}

func (l *library) read(ctx context.Context, _ *sdk.CallToolRequest, args readArgs) (result *sdk.CallToolResult, _ any, err error) {
	err = l.context(ctx, args.Context, func(c *ctxdir.Context) error {
		b, err := branchOf(c, args.Branch)
		if err != nil {
			return fmt.Errorf("no branch %q: the tool branches lists them", cut(args.Branch, 100))
		}
		from, to, err := args.span(ctx, b)
		if err != nil {
			return err
		}
		result, err = l.messages(ctx, c, b, from, to, &args)
		return err
	})
	return result, nil, err
}

// beside is how many messages are read on each side of one.
const beside = 5

// span returns the positions to read.
func (args *readArgs) span(ctx context.Context, b *ctxdir.Branch) (from, to int64, err error) {
	end, err := b.Len(ctx)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case args.Around != "":
		at, err := strconv.ParseInt(args.Around, 10, 64)
		if err != nil {
			id, perr := uuid.Parse(args.Around)
			if perr != nil {
				return 0, 0, errors.New("around is neither a position nor the id of a message")
			}
			m, merr := b.Message(ctx, id)
			if merr != nil {
				return 0, 0, errors.New("the branch has no message with this id")
			}
			at = m.Position
		}
		return max(0, at-beside), min(end, at+beside+1), nil
	case args.From != nil || args.To != nil:
		from, to = 0, end
		if args.From != nil {
			from = max(0, *args.From)
		}
		if args.To != nil {
			to = min(end, *args.To)
		}
		return from, to, nil
	}
	last := args.Last
	if last <= 0 {
		last = 10
	}
	return max(0, end-last), end, nil
}

// messages quotes messages of a branch. What tools answered, and records that people do not read, are left out.
func (l *library) messages(
	ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, from, to int64, args *readArgs,
) (*sdk.CallToolResult, error) {
	end, err := b.Len(ctx)
	if err != nil {
		return nil, err
	}
	a := newAnswer(args.MaxTokens)
	a.whole = args.Whole
	s := c.Summary()
	hidden, stopped := 0, to
	for m, err := range b.Messages(ctx, from, to) {
		if err != nil {
			return nil, err
		}
		q := quoted{
			context: c.ID(), title: s.Title, tool: s.Labels["tool"], branch: b.Name(), position: m.Position, id: m.ID, role: m.Role,
			at: m.CreatedAt, note: subAgent(c.Metadata().ParentID),
		}
		if q.text = textOf(ctx, m, args.Tools); q.text == "" {
			hidden++
			continue
		}
		if !a.add(&q) {
			stopped = m.Position
			break
		}
	}
	if hidden > 0 {
		a.line(fmt.Sprintf("\n%d messages of tools and records are left out; tools=true shows them\n", hidden))
	}
	next := ""
	if stopped < to {
		next = fmt.Sprintf("from=%d", stopped)
	}
	return a.end(end, next), nil
}

// textOf is what people read of a message. With tools, calls and their results belong to it.
func textOf(ctx context.Context, m *ctxdir.Message, tools bool) string {
	if m.Unavailable != nil {
		return "(this message cannot be read)"
	}
	body, err := m.Texts(ctx)
	if err != nil {
		return "(this message cannot be read)"
	}
	if !tools && transcript.Bookkeeping(body) {
		return ""
	}
	parts := transcript.Parts(body)
	if !tools {
		parts = slices.DeleteFunc(parts, func(p transcript.Part) bool { return p.Kind != transcript.Text && p.Kind != transcript.Attachment })
	}
	return transcript.Join(parts)
}
