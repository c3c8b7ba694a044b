package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir"
)

// ErrDisconnected is the error of a connection that was lost, or that could not be made. A request can be repeated.
var ErrDisconnected = errors.New("the connection to the server was lost")

// ClientOptions say which server to ask.
type ClientOptions struct {
	URL   string // of the server, such as https://contexts.example.org
	Token string
	// Source has what may leave of conversations in local mode. Without it, requests in local mode fail.
	Source Source
	HTTP   *http.Client // nil for one that follows no redirection

	// Patience is how long to wait for the next piece of an answer; 0 means two minutes.
	Patience time.Duration
	// Attempts is how often a request is sent if the connection is lost; 0 means 4.
	Attempts int
	// Wait waits between two attempts; nil for a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	linkTimeout = 30 * time.Second // to connect, and to send a message
	maxPending  = 64               // questions of a connection that wait for an answer
	maxFaults   = 20               // messages of the other side that make no sense, until the connection ends
)

// link is one connection.
type link struct {
	o    *ClientOptions
	conn *websocket.Conn
	end  context.CancelCauseFunc
	ctx  context.Context //nolint:containedctx // of the connection

	mu    sync.Mutex
	calls map[string]*call
}

// call is a question that waits for answers.
type call struct {
	request *ChatRequest  // nil for another question
	more    chan struct{} // has an element if there may be answers
	mu      sync.Mutex
	answers []Payload
	size    int
	asked   bool // the context was sent
}

func dial(ctx context.Context, o *ClientOptions) (*link, error) {
	dialing, stop := context.WithTimeout(ctx, linkTimeout)
	defer stop()
	client := o.HTTP
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	header := http.Header{"Authorization": {"Bearer " + o.Token}}
	url := strings.TrimSuffix(o.URL, "/") + Path
	conn, resp, err := websocket.Dial(dialing, url, &websocket.DialOptions{ //nolint:bodyclose // the connection has it
		HTTPClient: client, HTTPHeader: header, Subprotocols: []string{Subprotocol},
	})
	if err != nil {
		if resp != nil && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			return nil, &Error{CodeInvalid, fmt.Sprintf("the server refused the connection: status %d", resp.StatusCode)}
		}
		return nil, fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	conn.SetReadLimit(MaxFrame)
	l := &link{o: o, conn: conn, calls: map[string]*call{}}
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	go l.read()
	return l, nil
}

// close ends the connection.
func (l *link) close(why error) {
	l.end(why)
	_ = l.conn.CloseNow() // there is nothing to say any more
}

// read hands answers to those that wait, until the connection ends.
func (l *link) read() {
	faults := 0
	for {
		kind, b, err := l.conn.Read(l.ctx)
		if err != nil {
			l.close(fmt.Errorf("%w: %w", ErrDisconnected, err))
			return
		}
		m, err := Decode(b)
		if err != nil || kind != websocket.MessageText || !l.deliver(m) {
			if faults++; faults > maxFaults {
				l.close(fmt.Errorf("%w: the server sends what nobody asked for", ErrDisconnected))
				return
			}
		}
	}
}

// deliver reports whether somebody wants a message.
func (l *link) deliver(m Message) bool {
	switch p := m.Payload.(type) {
	case ContextRequest:
		return l.answer(m.ID, p)
	case ChatResponse, UploadComplete, Error:
		l.mu.Lock()
		c := l.calls[m.ID]
		l.mu.Unlock()
		return c != nil && c.add(m.Payload)
	}
	return false
}

// add reports false if there is more than there may be.
func (c *call) add(p Payload) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, is := p.(ChatResponse); is {
		if c.size += len(r.Text) + 16; c.size > 2*MaxAnswer {
			return false
		}
	}
	c.answers = append(c.answers, p)
	select {
	case c.more <- struct{}{}:
	default:
	}
	return true
}

func (c *call) take() []Payload {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.answers
	c.answers = nil
	return all
}

// answer sends the context of a request in local mode that waits here, once. It reports false for any other: a server gets
// nothing of a conversation about which nobody asks it.
func (l *link) answer(id string, q ContextRequest) bool {
	l.mu.Lock()
	var of *call
	for _, c := range l.calls {
		if c.request != nil && !c.asked && c.request.asks(q) {
			of, c.asked = c, true
			break
		}
	}
	l.mu.Unlock()
	if of == nil || l.o.Source == nil {
		go l.sendTo(id, Error{CodeNotAsked, "there is no such request in local mode"})
		return of != nil
	}
	go func() {
		a, err := l.o.Source.Context(l.ctx, Query{q.SessionID, of.request.Message, q.Have, q.MaxTokens})
		if err != nil {
			of.add(Error{CodeFailed, "the context could not be assembled: " + err.Error()})
			l.sendTo(id, Error{CodeFailed, "the context could not be assembled"}) // why may have paths
			return
		}
		l.sendTo(id, a)
	}()
	return true
}

// asks reports whether a server may ask for the context of a request.
func (p *ChatRequest) asks(q ContextRequest) bool {
	return p.StorageMode == ctxdir.StorageLocal && p.SessionID == q.SessionID && p.RequestID == q.RequestID
}

// sendTo sends an answer to the server. A connection that is lost meanwhile is noticed elsewhere.
func (l *link) sendTo(id string, p Payload) { _ = l.send(Message{id, p}) }

func (l *link) send(m Message) error {
	b, err := Encode(m)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(l.ctx, linkTimeout)
	defer stop()
	if err := l.conn.Write(ctx, websocket.MessageText, b); err != nil {
		l.close(fmt.Errorf("%w: %w", ErrDisconnected, err))
		return context.Cause(l.ctx)
	}
	return nil
}

// ask sends a question and hands its answers to f, until f is done.
func (l *link) ask(ctx context.Context, id string, p Payload, f func(Payload) (done bool, err error)) error {
	c := &call{more: make(chan struct{}, 1)}
	if r, is := p.(ChatRequest); is {
		c.request = &r
	}
	l.mu.Lock()
	if len(l.calls) >= maxPending {
		l.mu.Unlock()
		return &Error{CodeBusy, "too many questions wait for an answer"}
	}
	l.calls[id] = c
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
	}()
	if err := l.send(Message{id, p}); err != nil {
		return err
	}
	patience := time.NewTimer(l.o.Patience)
	defer patience.Stop()
	for {
		select {
		case <-c.more:
			patience.Reset(l.o.Patience)
		case <-patience.C:
			return fmt.Errorf("%w: no answer for %v", ErrDisconnected, l.o.Patience)
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ctx.Done():
			if done, err := c.drain(f); done || err != nil {
				return err
			}
			return context.Cause(l.ctx)
		}
		if done, err := c.drain(f); done || err != nil {
			return err
		}
	}
}

// drain hands over the answers that have arrived.
func (c *call) drain(f func(Payload) (bool, error)) (done bool, err error) {
	for _, p := range c.take() {
		if e, is := p.(Error); is {
			return false, &e
		}
		if done, err = f(p); done || err != nil {
			return done, err
		}
	}
	return false, nil
}
