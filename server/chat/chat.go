package chat

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/server/meter"
	"github.com/google/uuid"
)

// Options configure the exchange.
type Options struct {
	Model     *Model        // nil: requests are answered with an error that says so
	Usage     meter.Log     // nil: requests in local mode likewise
	MaxTokens int           // of a context; 0 means [ctxdir.DefaultMaxTokens]
	Patience  time.Duration // for the context that an agent sends, and to take a message; 0 means 30 seconds
	Deadline  time.Duration // for an answer of the model; 0 means five minutes
	Log       *slog.Logger  // has a line for each failure, without ids, names and texts; may be nil
}

// User is who is at the other end of a connection.
type User struct {
	ID    uuid.UUID
	Store *ctxdir.Store
	// Index returns the search index of the store; it stays open.
	Index func(ctx context.Context) (*search.Index, error)
	// Hold keeps the store open until release.
	Hold func() (release func())
	// Full reports whether the store may not grow.
	Full func() bool
}

// Chat serves the exchange with all users.
type Chat struct {
	o       Options
	runs    runs
	windows windows
	ended   context.Context
	end     context.CancelFunc
	mu      sync.Mutex     // no connection begins while the exchange closes
	running sync.WaitGroup // connections, and answers of the model
}

// New returns the exchange. The caller closes it.
func New(o Options) *Chat {
	if o.MaxTokens <= 0 {
		o.MaxTokens = ctxdir.DefaultMaxTokens
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.Deadline <= 0 {
		o.Deadline = 5 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Chat{o: o, runs: newRuns(), windows: windows{all: map[session]*window{}}}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends connections and answers that still arrive, and returns when they have ended.
func (c *Chat) Close() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.running.Wait()
}

// enter notes one more connection, unless the exchange is closed.
func (c *Chat) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Err() != nil {
		return false
	}
	c.running.Add(1)
	return true
}

// job is a request that is ready for the model.
type job struct {
	prompts []Prompt
	stored  bool // the store has the answer, so that memory need not
	// keep keeps what is kept of the answer.
	keep func(ctx context.Context, text string, u exchange.Usage) error
}

// start asks the model. That does not end with the connection: the agent may ask again on another one.
func (c *Chat) start(u *User, r *run, j job) {
	release := u.Hold()
	c.running.Go(func() {
		defer release()
		var used exchange.Usage
		failed := &exchange.Error{Code: exchange.CodeFailed, Message: "the server failed; repeat the request"}
		defer func() { // also if it panics
			if p := recover(); p != nil {
				c.o.Log.Error("panic in the exchange")
			}
			c.runs.end(r, used, failed, !j.stored)
		}()
		ctx, stop := context.WithTimeout(c.ended, c.o.Deadline)
		defer stop()
		var text strings.Builder
		said, err := c.o.Model.Stream(ctx, j.prompts, func(piece string) error {
			text.WriteString(piece)
			r.add(piece)
			return nil
		})
		if err == nil {
			used = usageOf(said, j.prompts, text.String())
			err = j.keep(ctx, text.String(), used)
		}
		failed = c.problem(err)
	})
}

// usageOf returns the numbers of tokens that the model said, or an estimate.
func usageOf(said *exchange.Usage, prompts []Prompt, text string) exchange.Usage {
	if said != nil {
		return exchange.Usage{Prompt: said.Prompt, Completion: said.Completion}
	}
	e := exchange.Usage{Estimated: true, Completion: int64(assemble.Estimate().Count(text))}
	for _, p := range prompts {
		e.Prompt += int64(assemble.Estimate().Count(p.Content))
	}
	return e
}

// problem is an error as the agent gets it: nothing in it is from a store. It is nil for none.
func (c *Chat) problem(err error) *exchange.Error {
	var e *exchange.Error
	code, message := exchange.CodeFailed, "the server failed; repeat the request"
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, exchange.ErrMalformed):
		code, message = exchange.CodeInvalid, "the message is not valid"
	case errors.Is(err, ErrModel):
		code, message = exchange.CodeModel, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		code, message = exchange.CodeTimeout, "it took too long"
	case errors.Is(err, ctxdir.ErrNotExist):
		code, message = exchange.CodeNotFound, "the server has no such conversation"
	case errors.Is(err, ctxdir.ErrConflict), errors.Is(err, ctxdir.ErrPosition):
		code, message = exchange.CodeConflict, "the conversation has another message there"
	case errors.Is(err, ctxdir.ErrInvalid):
		code, message = exchange.CodeInvalid, "the messages cannot be stored"
	}
	if code == exchange.CodeFailed || code == exchange.CodeModel {
		c.o.Log.Warn("the exchange failed", "code", code)
	}
	return &exchange.Error{Code: code, Message: message}
}

// asker asks the agent at the other end of a connection, and waits for the answer.
type asker interface {
	ask(ctx context.Context, question exchange.Payload) (exchange.Payload, error)
}

const instruction = "You continue a conversation. Parts of it were left out or shortened. Placeholders such as [name] and [path] " +
	"stand for what stays with the user; use them as they are."

// bytesPerToken bounds a context that an agent sends.
const bytesPerToken = 8

// fromAgent asks the agent for the context of a request. Of the request, nothing but numbers of tokens is kept.
func (c *Chat) fromAgent(ctx context.Context, a asker, u *User, q *exchange.ChatRequest) (j job, err error) {
	if c.o.Usage == nil {
		return j, &exchange.Error{Code: exchange.CodeFailed, Message: "the server does not answer requests in local mode"}
	}
	of := session{u.ID, q.SessionID}
	held := c.windows.get(of)
	question := exchange.ContextRequest{SessionID: q.SessionID, RequestID: q.RequestID, MaxTokens: c.o.MaxTokens}
	if len(held) > 0 {
		question.Have = exchange.Have{Len: len(held), Last: exchange.Chain(held)}
	}
	p, err := a.ask(ctx, question)
	if err != nil {
		return j, err
	}
	got, is := p.(exchange.ConversationContext)
	if !is {
		return j, &exchange.Error{Code: exchange.CodeInvalid, Message: "the agent has no context for its request"}
	}
	messages, err := exchange.Extend(held, got)
	if err != nil {
		return j, err
	}
	size := len(got.Summary)
	for _, m := range messages {
		size += len(m.Content)
	}
	if size > bytesPerToken*c.o.MaxTokens || len(messages) > exchange.MaxMessages {
		return j, &exchange.Error{Code: exchange.CodeInvalid, Message: "the context exceeds the budget"}
	}
	c.windows.put(of, messages)
	j.prompts = []Prompt{{"system", strings.TrimSpace(instruction + "\n\n" + got.Summary)}}
	for _, m := range messages {
		j.prompts = append(j.prompts, Prompt(m))
	}
	j.prompts = append(j.prompts, Prompt{"user", q.Message})
	j.keep = func(ctx context.Context, _ string, used exchange.Usage) error {
		return c.o.Usage.Add(ctx, u.ID, meter.New(time.Now(), used.Prompt, used.Completion))
	}
	return j, nil
}

// stored is a message as the exchange appends it.
type stored struct {
	Role    string          `json:"role"`
	Content string          `json:"content"`
	Usage   *exchange.Usage `json:"usage,omitempty"`
}

// fromStore assembles the context of a request from the store of the user. If the answer is there already, it returns that.
//
// The question and the answer are one commit, when the answer is complete: so the context never has one without the other.
func (c *Chat) fromStore(ctx context.Context, u *User, q *exchange.ChatRequest) (j job, answer *stored, err error) {
	id, err := exchange.SessionContext(q.SessionID)
	if err != nil {
		return j, nil, err
	}
	err = use(ctx, u, q.SessionID, "", func(x *ctxdir.Context) (err error) {
		answer, err = storedAnswer(ctx, x, q)
		return err
	})
	if err != nil || answer != nil {
		return j, answer, err
	}
	index, err := u.Index(ctx)
	if err != nil {
		return j, nil, err
	}
	a, err := assemble.Build(ctx, u.Store, assemble.Request{
		Context: id, Query: q.Message, MaxTokens: c.o.MaxTokens, Format: assemble.OpenAI, Index: index,
	})
	if err != nil {
		return j, nil, err
	}
	if err := json.Unmarshal([]byte(a.Text), &j.prompts); err != nil {
		return j, nil, err
	}
	j.prompts, j.stored = append(j.prompts, Prompt{"user", q.Message}), true
	j.keep = func(ctx context.Context, text string, used exchange.Usage) error {
		question, err := ctxdir.NewDraft(stored{"user", q.Message, nil})
		if err != nil {
			return err
		}
		answer, err := ctxdir.NewDraft(stored{"assistant", text, &used})
		if err != nil {
			return err
		}
		question.ID, answer.ID = exchange.QuestionID(id, q.RequestID), exchange.AnswerID(id, q.RequestID)
		return u.Store.Use(ctx, id, func(x *ctxdir.Context) error {
			_, err := x.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.Append(x.Active().Name(), question, answer) })
			return err
		})
	}
	return j, nil, nil
}

// storedAnswer returns the answer to a request, nil if there is none. It fails if it is that to another question.
func storedAnswer(ctx context.Context, x *ctxdir.Context, q *exchange.ChatRequest) (*stored, error) {
	m, err := x.Active().Message(ctx, exchange.AnswerID(x.ID(), q.RequestID))
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	asked, err := x.Active().Message(ctx, exchange.QuestionID(x.ID(), q.RequestID))
	if err != nil {
		return nil, err
	}
	var question, answer stored
	if err := errors.Join(read(ctx, asked, &question), read(ctx, m, &answer)); err != nil {
		return nil, err
	}
	if question.Content != q.Message {
		return nil, &exchange.Error{Code: exchange.CodeConflict, Message: "the request id belongs to another request"}
	}
	return &answer, nil
}

func read(ctx context.Context, m *ctxdir.Message, v any) error {
	if m.Unavailable != nil {
		return m.Unavailable
	}
	b, err := m.Body(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// use calls f with the context of a session. One that an external id names is created if there is none.
func use(ctx context.Context, u *User, sessionID, title string, f func(x *ctxdir.Context) error) error {
	id, err := exchange.SessionContext(sessionID)
	if err != nil {
		return err
	}
	if id.String() == strings.ToLower(sessionID) {
		return u.Store.Use(ctx, id, f)
	}
	return u.Store.UseOrCreate(ctx, ctxdir.Metadata{ExternalID: sessionID, Title: title}, f)
}
