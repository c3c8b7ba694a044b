package exchange_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/google/uuid"
)

// holder is the server: it has what it was sent.
type holder struct{ messages []exchange.ContextMessage }

func (h *holder) ask(t *testing.T, l *exchange.Local, session, message string, most int) exchange.ConversationContext {
	t.Helper()
	q := exchange.Query{SessionID: session, Message: message, MaxTokens: most}
	if len(h.messages) > 0 {
		q.Have = exchange.Have{Len: len(h.messages), Last: exchange.Chain(h.messages)}
	}
	a, err := l.Context(t.Context(), q)
	check(t, err)
	h.messages, err = exchange.Extend(h.messages, a)
	check(t, err)
	tokens := assemble.Estimate().Count(a.Summary)
	for _, m := range h.messages {
		tokens += assemble.Estimate().Count(m.Content)
	}
	if tokens > most {
		t.Errorf("a context of %d tokens, more than %d", tokens, most)
	}
	return a
}

// TestOnlySummariesLeave: nothing of code, paths, names and tools is in what leaves, of a short and of a long conversation.
func TestOnlySummariesLeave(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	l := exchange.NewLocal(s)
	defer l.Close()
	talk(t, c, 0, 3)
	var h holder
	short := h.ask(t, l, c.ID().String(), "Why does the queue wait?", 4000)
	const said = "We decided to restart the worker number 2 after a failure"
	if len(short.Messages) != 6 || short.Summary != "" || !strings.Contains(all(short), said) {
		t.Errorf("a short conversation: %+v", short)
	}
	talk(t, c, 3, 150)
	long := h.ask(t, l, c.ID().String(), "Why does the queue wait?", 2000)
	if long.From != 0 || long.Summary == "" || len(long.Messages) < 10 || len(long.Messages) > 60 {
		t.Errorf("a long conversation: from %d, %d messages, summary %q", long.From, len(long.Messages), long.Summary)
	}
	for _, a := range []exchange.ConversationContext{short, long} {
		if canary := hasCanary(all(a)); canary != "" {
			t.Errorf("%q leaves: %s", canary, all(a))
		}
	}
}

// TestOnlyTheRestTravels: a server that has the window gets what is new; one that has something else, or another client with the
// same session, gets everything, and has the same afterwards.
func TestOnlyTheRestTravels(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	l, other := exchange.NewLocal(s), exchange.NewLocal(s)
	defer l.Close()
	defer other.Close()
	session := c.ID().String()
	talk(t, c, 0, 4)
	var h holder
	h.ask(t, l, session, "first", 4000)
	talk(t, c, 4, 5)
	if a := h.ask(t, l, session, "second", 4000); a.From != 8 || len(a.Messages) != 2 || a.Summary != "" {
		t.Errorf("after two more messages: %+v", a)
	}
	add(t, c, "user", "third question, which the agent stores first")
	if a := h.ask(t, l, session, "third question, which the agent stores first", 4000); a.From != 10 || len(a.Messages) != 0 {
		t.Errorf("the question itself travels twice: %+v", a)
	}
	was := h.messages
	if a := h.ask(t, other, session, "of another client", 4000); len(h.messages) != len(was)+1 || a.From != 0 && a.From != 10 {
		t.Errorf("another client: from %d, %d messages", a.From, len(h.messages))
	}
	h.messages = []exchange.ContextMessage{{Role: "user", Content: "something else"}}
	if a := h.ask(t, l, session, "with a wrong window", 4000); a.From != 0 || len(h.messages) != 11 {
		t.Errorf("a server that has something else: from %d, %d messages", a.From, len(h.messages))
	}
	check(t, c.Active().Rewind(t.Context(), 4))
	if a := h.ask(t, l, session, "after a rewind", 4000); a.From != 0 || len(h.messages) != 2 {
		t.Errorf("after a rewind: from %d, %d messages", a.From, len(h.messages))
	}
}

// TestNewNames: a name that becomes known later does not leave again.
func TestNewNames(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	l := exchange.NewLocal(s)
	defer l.Close()
	add(t, c, "user", "The garden plan is late.")
	var h holder
	if a := h.ask(t, l, c.ID().String(), "first", 4000); !strings.Contains(all(a), "garden") {
		t.Fatalf("not sent at all: %+v", a)
	}
	_, err := s.Create(t.Context(), ctxdir.Metadata{Labels: map[string]string{"project": "/home/ada/garden"}})
	check(t, err)
	h.messages = nil
	if a := h.ask(t, l, c.ID().String(), "second", 4000); strings.Contains(all(a), "garden") || len(a.Messages) != 1 {
		t.Errorf("the name of a project leaves: %+v", a)
	}
}

// TestWindows compares what a server has with a new window, over random conversations and budgets: within the budget,
// without canaries, and ending with the newest message.
func TestWindows(t *testing.T) {
	s := newStore(t)
	l := exchange.NewLocal(s)
	defer l.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		c, n := newContext(t, s), 0
		var h holder
		for step := range 12 {
			more := r.IntN(8)
			talk(t, c, n, n+more)
			n += more
			a := h.ask(t, l, c.ID().String(), fmt.Sprintf("question %d", step), 1500+r.IntN(500))
			if canary := hasCanary(all(a)); canary != "" {
				t.Fatalf("%q leaves: %s", canary, all(a))
			}
			want := fmt.Sprintf("We decided to restart the worker number %d after a failure", n-1)
			if n > 0 && !strings.Contains(h.messages[len(h.messages)-1].Content, want) {
				t.Fatalf("the newest message is not there: %+v", h.messages)
			}
		}
	}
}

func TestNoSuchContext(t *testing.T) {
	l := exchange.NewLocal(newStore(t))
	defer l.Close()
	for _, id := range []string{uuid.NewString(), "nobody's"} {
		if _, err := l.Context(t.Context(), exchange.Query{SessionID: id, Message: "m", MaxTokens: 100}); !errors.Is(err, ctxdir.ErrNotExist) {
			t.Errorf("%s: %v", id, err)
		}
	}
	_, err := l.Context(t.Context(), exchange.Query{SessionID: "../x\x00", Message: "m", MaxTokens: 100})
	if !errors.Is(err, exchange.ErrMalformed) {
		t.Error(err)
	}
}
