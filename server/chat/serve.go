package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
)

// Conn is a connection to an agent.
type Conn interface {
	// Read returns the next message, of at most [exchange.MaxFrame] bytes.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a message. Several goroutines may call it.
	Write(ctx context.Context, b []byte) error
}

// Bounds of a connection.
const (
	maxQuestions = 16 // that are being answered
	maxFaults    = 20 // messages that make no sense
)

// ErrProtocol is the error of an agent that sends too much that makes no sense.
var ErrProtocol = errors.New("too many messages that make no sense")

// peer is the agent at the other end of a connection.
type peer struct {
	c    *Chat
	u    *User
	conn Conn

	mu        sync.Mutex
	answering map[string]bool // ids of questions of the agent
	waiting   map[string]chan exchange.Payload
	asked     int
}

var (
	errFull    = &exchange.Error{Code: exchange.CodeNoSpace, Message: "the quota is used up: remove conversations and purge the trash"}
	errBusy    = &exchange.Error{Code: exchange.CodeBusy, Message: "too many requests at once; repeat the request later"}
	errSameID  = &exchange.Error{Code: exchange.CodeConflict, Message: "the id belongs to a question that is being answered"}
	errNotHere = &exchange.Error{Code: exchange.CodeInvalid, Message: "only a server sends messages of this type"}
)

// Serve answers an agent until the connection ends, and returns why. It returns when nothing that belongs to the connection
// runs any more.
func (c *Chat) Serve(ctx context.Context, conn Conn, u User) error {
	if !c.enter() {
		return context.Canceled
	}
	defer c.running.Done()
	ctx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(c.ended, stop)()
	p := &peer{c: c, u: &u, conn: conn, answering: map[string]bool{}, waiting: map[string]chan exchange.Payload{}}
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	faults := 0
	for {
		b, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		m, err := exchange.Decode(b)
		var wrong *exchange.Error
		switch payload := m.Payload.(type) {
		case nil:
			wrong = &exchange.Error{Code: exchange.CodeInvalid, Message: err.Error()}
			if errors.Is(err, exchange.ErrUnknownType) {
				wrong.Code = exchange.CodeUnknownType
			}
		case exchange.ChatRequest:
			wrong = p.begin(ctx, &all, m.ID, func() error { return p.chat(ctx, m.ID, &payload) })
		case exchange.Upload:
			wrong = p.begin(ctx, &all, m.ID, func() error { return p.upload(ctx, m.ID, &payload) })
		case exchange.ConversationContext, exchange.Error:
			if wrong = p.deliver(m); wrong != nil && m.Payload.Type() == (exchange.Error{}).Type() {
				m.ID = "" // an error is not answered by one with its id
			}
		default:
			wrong = errNotHere
		}
		if wrong == nil {
			continue
		}
		if wrong != errBusy {
			faults++
		}
		if err := p.send(ctx, m.ID, *wrong); err != nil {
			return err
		}
		if faults > maxFaults {
			return ErrProtocol
		}
	}
}

// begin answers a question in the background.
func (p *peer) begin(ctx context.Context, all *sync.WaitGroup, id string, answer func() error) *exchange.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answering[id] {
		return errSameID
	}
	if len(p.answering) >= maxQuestions {
		return errBusy
	}
	p.answering[id] = true
	all.Go(func() {
		err := errors.New("panic")
		defer func() {
			if r := recover(); r != nil {
				p.c.o.Log.Error("panic in the exchange")
			}
			p.mu.Lock()
			delete(p.answering, id)
			p.mu.Unlock()
			if e := p.c.problem(err); e != nil && ctx.Err() == nil {
				_ = p.send(ctx, id, *e) // a lost connection is noticed by its reader
			}
		}()
		if err = answer(); ctx.Err() != nil {
			err = nil // nobody is there
		}
	})
	return nil
}

func (p *peer) send(ctx context.Context, id string, payload exchange.Payload) error {
	b, err := exchange.Encode(exchange.Message{ID: id, Payload: payload})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, p.c.o.Patience)
	defer stop()
	return p.conn.Write(ctx, b)
}

// ask implements [asker].
func (p *peer) ask(ctx context.Context, question exchange.Payload) (exchange.Payload, error) {
	got := make(chan exchange.Payload, 1)
	p.mu.Lock()
	p.asked++
	id := "server-" + strconv.Itoa(p.asked)
	p.waiting[id] = got
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
	}()
	ctx, stop := context.WithTimeout(ctx, p.c.o.Patience)
	defer stop()
	if err := p.send(ctx, id, question); err != nil {
		return nil, err
	}
	select {
	case answer := <-got:
		return answer, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the agent did not answer: %w", ctx.Err())
	}
}

// deliver hands an answer of the agent to the question, of which there is one.
func (p *peer) deliver(m exchange.Message) *exchange.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.waiting[m.ID]
	if got == nil {
		return &exchange.Error{Code: exchange.CodeNotAsked, Message: "there is no question to which this is the answer"}
	}
	delete(p.waiting, m.ID)
	got <- m.Payload
	return nil
}

// chat answers a request. A repeated one gets the answer of the first.
func (p *peer) chat(ctx context.Context, id string, q *exchange.ChatRequest) error {
	if p.c.o.Model == nil {
		return &exchange.Error{Code: exchange.CodeNoModel, Message: "the server has no model: its administrator can set --model-url"}
	}
	for {
		r, isNew, wrong := p.c.runs.claim(p.u.ID, q)
		if wrong != nil {
			return wrong
		}
		if isNew {
			if err := p.prepare(ctx, r, q); err != nil {
				p.c.runs.abandon(r)
				return err
			}
		}
		err := r.follow(ctx, func(payload exchange.Payload) error { return p.send(ctx, id, payload) })
		if !errors.Is(err, errAbandoned) {
			return err
		}
	}
}

// prepare gets the context of a request and begins to ask the model. Without an error, the run has begun.
func (p *peer) prepare(ctx context.Context, r *run, q *exchange.ChatRequest) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("panic")
		}
	}()
	var j job
	if q.StorageMode == ctxdir.StorageLocal {
		if j, err = p.c.fromAgent(ctx, p, p.u, q); err != nil {
			return err
		}
		p.c.start(p.u, r, j)
		return nil
	}
	if p.u.Full() {
		return errFull
	}
	j, answer, err := p.c.fromStore(ctx, p.u, q)
	if err != nil {
		return err
	}
	if answer == nil {
		p.c.start(p.u, r, j)
		return nil
	}
	var used exchange.Usage
	if answer.Usage != nil {
		used = *answer.Usage
	}
	r.add(answer.Content)
	p.c.runs.end(r, used, nil, false)
	return nil
}

func (p *peer) upload(ctx context.Context, id string, u *exchange.Upload) error {
	done, err := p.c.upload(ctx, p.u, u)
	if err != nil {
		return err
	}
	return p.send(ctx, id, done)
}
