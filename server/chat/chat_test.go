package chat_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/server/chat"
	"github.com/ctxdir/ctxdir/server/meter"
	"github.com/google/uuid"
)

// rows is a log in memory.
type rows struct {
	mu  sync.Mutex
	all []meter.Row
}

func (r *rows) Add(_ context.Context, _ uuid.UUID, more []meter.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, more...)
	return nil
}

func (r *rows) List(context.Context, uuid.UUID) ([]meter.Row, error) { return r.all, nil }

// model answers without a network. It waits for hold, if there is one.
type model struct {
	hold  chan struct{}
	calls int
	mu    sync.Mutex
}

func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	w := httptest.NewRecorder()
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Yes.\"}}]}\n\ndata: [DONE]\n\n")
	return w.Result(), nil
}

// pipe is a connection in memory: the test is the agent.
type pipe struct{ in, out chan []byte }

func newPipe() pipe { return pipe{make(chan []byte, 1000), make(chan []byte, 1000)} }

var errGone = errors.New("the agent has left")

func (p pipe) Read(ctx context.Context) ([]byte, error) {
	select {
	case b, ok := <-p.in:
		if !ok {
			return nil, errGone
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipe) Write(ctx context.Context, b []byte) error {
	select {
	case p.out <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p pipe) send(t *testing.T, id string, m exchange.Payload) {
	t.Helper()
	b, err := exchange.Encode(exchange.Message{ID: id, Payload: m})
	if err != nil {
		t.Fatal(err)
	}
	p.in <- b
}

func (p pipe) next(t *testing.T) exchange.Message {
	t.Helper()
	m, err := exchange.Decode(<-p.out)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func user(s *ctxdir.Store) chat.User {
	return chat.User{
		ID: uuid.MustParse("0197b3c2-5d0e-4a51-8c11-2f6f6f7f0a01"), Store: s,
		Index: func(ctx context.Context) (*search.Index, error) { return search.Open(ctx, s) },
		Hold:  func() func() { return func() {} }, Full: func() bool { return false },
	}
}

func newChat(m *model, log meter.Log) *chat.Chat {
	return chat.New(chat.Options{Usage: log, Model: &chat.Model{URL: "http://localhost/v1", Client: &http.Client{Transport: m}}})
}

func local(id string) exchange.ChatRequest {
	return exchange.ChatRequest{SessionID: "s", RequestID: id, StorageMode: ctxdir.StorageLocal, Message: "Is it ready?"}
}

// TestSilentAgent: an agent that does not answer the question for its context gets an error after a while, and may ask again.
func TestSilentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &model{}, &rows{}
		c := newChat(m, log)
		p := newPipe()
		ended := make(chan error)
		go func() { ended <- c.Serve(t.Context(), p, user(nil)) }()
		p.send(t, "a", local("r"))
		if _, is := p.next(t).Payload.(exchange.ContextRequest); !is {
			t.Fatal("the agent is not asked")
		}
		if e, is := p.next(t).Payload.(exchange.Error); !is || e.Code != exchange.CodeTimeout {
			t.Errorf("after a while: %+v", e)
		}
		p.send(t, "server-1", exchange.ConversationContext{}) // too late
		if e, is := p.next(t).Payload.(exchange.Error); !is || e.Code != exchange.CodeNotAsked {
			t.Errorf("too late: %+v", e)
		}
		p.send(t, "b", local("r"))
		p.send(t, p.next(t).ID, exchange.ConversationContext{Summary: "It began."})
		if got := answer(t, p, "b"); got != "Yes." || m.calls != 1 || len(log.all) != 2 {
			t.Errorf("%q, %d calls, %v", got, m.calls, log.all)
		}
		close(p.in)
		if err := <-ended; !errors.Is(err, errGone) {
			t.Error(err)
		}
		c.Close()
	})
}

// answer reads the pieces of an answer.
func answer(t *testing.T, p pipe, id string) (text string) {
	t.Helper()
	for {
		m := p.next(t)
		r, is := m.Payload.(exchange.ChatResponse)
		if !is || m.ID != id {
			t.Fatalf("%+v", m)
		}
		if text += r.Text; r.Done {
			return text
		}
	}
}

// TestLeavesMeanwhile: the agent leaves while the model thinks. It asks again on another connection, and gets that answer.
func TestLeavesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &model{hold: make(chan struct{})}, &rows{}
		c := newChat(m, log)
		first, second := newPipe(), newPipe()
		ended := make(chan error, 2)
		go func() { ended <- c.Serve(t.Context(), first, user(nil)) }()
		first.send(t, "a", local("r"))
		first.send(t, first.next(t).ID, exchange.ConversationContext{})
		synctest.Wait()
		close(first.in)
		<-ended
		go func() { ended <- c.Serve(t.Context(), second, user(nil)) }()
		second.send(t, "b", local("r"))
		synctest.Wait()
		close(m.hold)
		if got := answer(t, second, "b"); got != "Yes." || m.calls != 1 || len(log.all) != 2 {
			t.Errorf("%q, %d calls, %v", got, m.calls, log.all)
		}
		<-time.After(time.Hour) // in the bubble: the answer is forgotten, and its window
		second.send(t, "c", local("r"))
		if q := second.next(t).Payload.(exchange.ContextRequest); q.Have.Len != 0 {
			t.Errorf("the server still has %+v", q.Have)
		}
		close(second.in)
		<-ended
		c.Close()
	})
}

// TestTakesOver: the first of two connections with the same request is lost before the context arrives; the second is asked.
func TestTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{}
		c := newChat(m, &rows{})
		first, second := newPipe(), newPipe()
		ended := make(chan error, 2)
		go func() { ended <- c.Serve(t.Context(), first, user(nil)) }()
		first.send(t, "a", local("r"))
		first.next(t)
		go func() { ended <- c.Serve(t.Context(), second, user(nil)) }()
		second.send(t, "b", local("r"))
		synctest.Wait()
		if len(second.out) > 0 {
			t.Error("both are asked")
		}
		close(first.in)
		second.send(t, second.next(t).ID, exchange.ConversationContext{})
		if got := answer(t, second, "b"); got != "Yes." || m.calls != 1 {
			t.Errorf("%q, %d calls", got, m.calls)
		}
		close(second.in)
		<-ended
		<-ended
		c.Close()
	})
}

// TestNonsense: an agent that sends nonsense is told so, and at last the connection ends.
func TestNonsense(t *testing.T) {
	for name, text := range map[string]string{
		"unknown type": `{"type":"order_pizza","id":"x","payload":{}}`, "no JSON": `{`, "huge": strings.Repeat("x", 2*exchange.MaxFrame),
		"an answer to no question": `{"type":"conversation_context","id":"server-1","payload":{}}`,
		"an error of no question":  `{"type":"error","id":"server-9","payload":{"code":"x"}}`,
		"a message of servers":     `{"type":"chat_response","id":"x","payload":{}}`,
	} {
		c, p := newChat(&model{}, &rows{}), newPipe()
		for range 100 {
			p.in <- []byte(text)
		}
		if err := c.Serve(t.Context(), p, user(nil)); !errors.Is(err, chat.ErrProtocol) || len(p.out) == 0 || len(p.out) > 50 {
			t.Errorf("%s: %v after %d answers", name, err, len(p.out))
		}
		if e, is := p.next(t).Payload.(exchange.Error); !is || e.Code == exchange.CodeFailed {
			t.Errorf("%s: %+v", name, e)
		}
		c.Close()
	}
}

// TestTooMuch: requests above the bounds are refused, and the others go on.
func TestTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{hold: make(chan struct{})}
		c, p := newChat(m, &rows{}), newPipe()
		ended := make(chan error)
		go func() { ended <- c.Serve(t.Context(), p, user(nil)) }()
		const sent = 30
		for i := range sent {
			p.send(t, fmt.Sprint("q", i), local(fmt.Sprint("r", i)))
		}
		synctest.Wait()
		busy, questions := 0, 0
		for range sent {
			switch q := p.next(t).Payload.(type) {
			case exchange.Error:
				if busy++; q.Code != exchange.CodeBusy {
					t.Errorf("%+v", q)
				}
			case exchange.ContextRequest:
				questions++
			}
		}
		if questions != 8 || busy != sent-8 {
			t.Errorf("%d questions, %d busy", questions, busy)
		}
		close(p.in)
		<-ended
		c.Close()
	})
}

// TestContextAboveTheBudget: an agent that sends more than it was asked for is refused.
func TestContextAboveTheBudget(t *testing.T) {
	c, p := newChat(&model{}, &rows{}), newPipe()
	ended := make(chan error)
	go func() { ended <- c.Serve(t.Context(), p, user(nil)) }()
	for name, answer := range map[string]exchange.Payload{
		"too-long": exchange.ConversationContext{Summary: strings.Repeat("x", 100_000)},
		"too-far":  exchange.ConversationContext{From: 5},
		"an-error": exchange.Error{Code: exchange.CodeFailed},
	} {
		p.send(t, "a", local(name))
		p.send(t, p.next(t).ID, answer)
		if e, is := p.next(t).Payload.(exchange.Error); !is || e.Code != exchange.CodeInvalid {
			t.Errorf("%s: %+v", name, e)
		}
	}
	close(p.in)
	<-ended
	c.Close()
}

// TestModel: what a model may do wrong.
func TestModel(t *testing.T) {
	long := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 100_000) + `"}}]}` + "\n"
	for name, c := range map[string]struct {
		status int
		body   string
		want   string // of the error; empty for an answer
	}{
		"answer":     {200, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n: comment\ndata: [DONE]\n", ""},
		"cut":        {200, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", "not complete"},
		"empty":      {200, "data: [DONE]\n", "empty"},
		"no JSON":    {200, "data: CANARY\n", "not a chat completion"},
		"error":      {200, "data: {\"error\":{\"message\":\"CANARY\"}}\n", "not a chat completion"},
		"status":     {503, "CANARY", "status 503"},
		"long":       {200, strings.Repeat(long, 20), "exceeds"},
		"long event": {200, "data: " + strings.Repeat("x", 1<<20), "not complete"},
		"redirect":   {302, "", "status 302"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://localhost/")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		m := chat.Model{URL: s.URL}
		_, err := m.Stream(t.Context(), nil, func(string) error { return nil })
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, chat.ErrModel) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: the error tells what the model said: %v", name, err)
		}
		s.Close()
	}
	for _, m := range []chat.Model{{URL: "ftp://x"}, {URL: "x"}, {URL: "http://u:p@x"}, {URL: "http://example.org", Key: "k"}} {
		if m.Check() == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
}
