package exchange_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
)

// remote is a connection of a server that a test plays.
type remote struct {
	*testing.T
	conn *websocket.Conn
}

// send sends a message. The client may be gone.
func (r remote) send(id string, p exchange.Payload) {
	b, err := exchange.Encode(exchange.Message{ID: id, Payload: p})
	if err != nil {
		r.Error(err)
	}
	_ = r.conn.Write(context.Background(), websocket.MessageText, b)
}

// next returns the next message, or an empty one if the client has left.
func (r remote) next() exchange.Message {
	_, b, err := r.conn.Read(context.Background())
	if err != nil {
		return exchange.Message{}
	}
	m, err := exchange.Decode(b)
	if err != nil {
		r.Error(err)
	}
	return m
}

// play is a server whose connections a test plays, with the number of each.
func play(t *testing.T, source exchange.Source, f func(r remote, n int)) *exchange.Client {
	t.Helper()
	var n atomic.Int64
	var running sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != exchange.Path || r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{exchange.Subprotocol}})
		if err != nil {
			t.Error(err)
			return
		}
		running.Add(1)
		defer running.Done()
		defer conn.CloseNow()
		f(remote{t, conn}, int(n.Add(1)))
	}))
	t.Cleanup(s.Close)
	c := exchange.NewClient(exchange.ClientOptions{
		URL: s.URL, Token: "secret", Source: source, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	t.Cleanup(func() {
		_ = c.Close()
		running.Wait()
	})
	return c
}

func request(id, mode string) exchange.ChatRequest {
	return exchange.ChatRequest{SessionID: "session", RequestID: id, StorageMode: mode, Message: "question " + id}
}

// TestAnyOrder: answers that arrive mixed and in another order reach those that asked.
func TestAnyOrder(t *testing.T) {
	c := play(t, nil, func(r remote, _ int) {
		a, b := r.next(), r.next()
		r.send(b.ID, exchange.ChatResponse{Text: "to "})
		r.send(a.ID, exchange.ChatResponse{Text: "to "})
		for _, m := range []exchange.Message{b, a} {
			r.send(m.ID, exchange.ChatResponse{Text: m.Payload.(exchange.ChatRequest).RequestID})
			r.send(m.ID, exchange.ChatResponse{Done: true, Usage: &exchange.Usage{Prompt: 1}})
		}
		r.next()
	})
	var both sync.WaitGroup
	for _, id := range []string{"one", "two"} {
		both.Go(func() {
			var text string
			a, err := c.Ask(t.Context(), request(id, ctxdir.StorageServer), func(piece string) { text += piece })
			if err != nil || a.Text != "to "+id || text != a.Text || a.Usage.Prompt != 1 {
				t.Errorf("%s: %+v, %q, %v", id, a, text, err)
			}
		})
	}
	both.Wait()
}

// TestLostConnection loses the connection before, within and after an answer. The caller gets each piece once.
func TestLostConnection(t *testing.T) {
	c := play(t, nil, func(r remote, n int) {
		m := r.next()
		if n == 1 {
			return
		}
		r.send(m.ID, exchange.ChatResponse{Text: "The answer"})
		if n == 2 {
			return
		}
		r.send(m.ID, exchange.ChatResponse{Text: " is 42."})
		if n > 3 {
			r.send(m.ID, exchange.ChatResponse{Done: true})
			r.next()
		}
	})
	var text string
	a, err := c.Ask(t.Context(), request("r", ctxdir.StorageServer), func(piece string) { text += piece })
	if err != nil || a.Text != "The answer is 42." || text != a.Text {
		t.Errorf("%+v, %q, %v", a, text, err)
	}
}

// TestOtherAnswer: an answer that begins otherwise after a lost connection is an error, not a mixture.
func TestOtherAnswer(t *testing.T) {
	c := play(t, nil, func(r remote, n int) {
		m := r.next()
		r.send(m.ID, exchange.ChatResponse{Text: []string{"", "Yes, it is", "No, it is not"}[n]})
		if n > 1 {
			r.send(m.ID, exchange.ChatResponse{Done: true})
			r.next()
		}
	})
	if a, err := c.Ask(t.Context(), request("r", ctxdir.StorageServer), nil); !errors.Is(err, exchange.ErrChanged) {
		t.Errorf("%+v, %v", a, err)
	}
}

// secrets is a source that notes what it is asked.
type secrets struct {
	mu    sync.Mutex
	asked []exchange.Query
}

func (s *secrets) Context(_ context.Context, q exchange.Query) (exchange.ConversationContext, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q)
	return exchange.ConversationContext{Summary: "SECRET"}, nil
}

// TestServerThatAsksTooMuch: a server gets a context once for each request in local mode, and nothing else.
func TestServerThatAsksTooMuch(t *testing.T) {
	s := &secrets{}
	c := play(t, s, func(r remote, _ int) {
		local, stored := r.next(), r.next()
		if local.Payload.(exchange.ChatRequest).StorageMode != ctxdir.StorageLocal {
			local, stored = stored, local
		}
		want := []string{"not_asked", "not_asked", "not_asked", "SECRET", "not_asked"}
		got := map[string]int{}
		for i, q := range []exchange.ContextRequest{
			{SessionID: "another", RequestID: "mine", MaxTokens: 1000},
			{SessionID: "session", RequestID: "unknown", MaxTokens: 1000},
			{SessionID: "session", RequestID: "stored", MaxTokens: 1000},
			{SessionID: "session", RequestID: "mine", MaxTokens: 1000},
			{SessionID: "session", RequestID: "mine", MaxTokens: 1000},
		} {
			id := "q" + string(rune('0'+i))
			r.send(id, q)
			m := r.next()
			answer := ""
			switch p := m.Payload.(type) {
			case exchange.Error:
				answer = p.Code
			case exchange.ConversationContext:
				answer = p.Summary
			}
			if got[answer]++; m.ID != id || answer != want[i] {
				r.Errorf("question %d: %s %q, not %q", i, m.ID, answer, want[i])
			}
		}
		for _, m := range []exchange.Message{local, stored} {
			r.send(m.ID, exchange.ChatResponse{Text: "x", Done: true})
		}
		r.next()
	})
	var both sync.WaitGroup
	for id, mode := range map[string]string{"mine": ctxdir.StorageLocal, "stored": ctxdir.StorageServer} {
		both.Go(func() {
			if _, err := c.Ask(t.Context(), request(id, mode), nil); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if len(s.asked) != 1 || s.asked[0].Message != "question mine" {
		t.Errorf("the source was asked %+v", s.asked)
	}
}

// TestHostileServer: a server that sends too much, the wrong type or nonsense ends in an error.
func TestHostileServer(t *testing.T) {
	for name, f := range map[string]func(r remote, m exchange.Message){
		"a huge frame": func(r remote, _ exchange.Message) {
			_ = r.conn.Write(context.Background(), websocket.MessageText, []byte(strings.Repeat("x", 2*exchange.MaxFrame)))
		},
		"an endless answer": func(r remote, m exchange.Message) {
			for range 40 {
				r.send(m.ID, exchange.ChatResponse{Text: strings.Repeat("x", 100_000)})
			}
		},
		"another type": func(r remote, m exchange.Message) { r.send(m.ID, exchange.UploadComplete{}) },
		"nonsense": func(r remote, _ exchange.Message) {
			for range 100 {
				_ = r.conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"order_pizza"}`))
			}
		},
		"answers to nobody": func(r remote, _ exchange.Message) {
			for range 100 {
				r.send("nobody", exchange.ChatResponse{Text: "x"})
			}
		},
		"questions without end": func(r remote, _ exchange.Message) {
			for range 100 {
				r.send("q", exchange.ContextRequest{SessionID: "s", RequestID: "r", MaxTokens: 10})
			}
		},
		"binary": func(r remote, _ exchange.Message) {
			for range 100 {
				_ = r.conn.Write(context.Background(), websocket.MessageBinary, []byte(`{}`))
			}
		},
	} {
		c := play(t, nil, func(r remote, _ int) {
			if m := r.next(); m.Payload != nil {
				f(r, m)
			}
			for r.next().Payload != nil { // until the client leaves
			}
		})
		a, err := c.Ask(t.Context(), request("r", ctxdir.StorageServer), nil)
		if !errors.Is(err, exchange.ErrDisconnected) && !errors.Is(err, exchange.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, a.Text[:min(len(a.Text), 80)], err)
		}
		_ = c.Close()
	}
}

// TestErrors: an error of the server reaches the caller, and a refused connection is not tried again.
func TestErrors(t *testing.T) {
	c := play(t, nil, func(r remote, _ int) {
		r.send(r.next().ID, exchange.Error{Code: exchange.CodeNoModel, Message: "no model"})
		r.next()
	})
	var e *exchange.Error
	if _, err := c.Ask(t.Context(), request("r", ctxdir.StorageServer), nil); !errors.As(err, &e) || e.Code != exchange.CodeNoModel {
		t.Error(err)
	}
	check(t, c.Close())
	if _, err := c.Ask(t.Context(), request("r", ctxdir.StorageServer), nil); !errors.Is(err, ctxdir.ErrClosed) {
		t.Error(err)
	}
	tries := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries++
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	c = exchange.NewClient(exchange.ClientOptions{URL: s.URL, Token: "wrong"})
	defer c.Close()
	if _, err := c.Ask(t.Context(), request("r", ctxdir.StorageServer), nil); !errors.As(err, &e) || tries != 1 {
		t.Errorf("%d tries: %v", tries, err)
	}
}
