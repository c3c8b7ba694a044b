package chat_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// FuzzSequence sends any messages in any order, one a line, with "%" for the id of the newest question of the server. Whatever
// comes, each answer is a message that decodes, each request gets at most one end, and the server ends with the connection.
func FuzzSequence(f *testing.F) {
	id := uuid.NewString()
	of := func(kind, id, payload string) string {
		return `{"type":"` + kind + `","id":"` + id + `","payload":` + payload + "}\n"
	}
	ask := func(id, mode string) string {
		return of("chat_request", id, `{"session_id":"s","request_id":"`+id+`","storage_mode":"`+mode+`","message":"m"}`)
	}
	given := of("conversation_context", "%", `{"from":0,"messages":[{"role":"user","content":"c"}],"summary":"s"}`)
	for _, seed := range []string{
		ask("a", "local") + given + ask("a", "local") + ask("b", "local") + of("conversation_context", "%", `{"from":1}`),
		ask("a", "local") + ask("b", "local") + of("error", "%", `{"code":"x"}`) + given,
		ask("a", "server") + ask("a", "server") + ask("b", "server"),
		of("upload_conversation", "u", `{"session_id":"`+id+`","messages":[{"id":"`+id+`","body":{"role":"user","content":"x"}}]}`) +
			of("upload_conversation", "v", `{"session_id":"`+id+`"}`) +
			of("chat_request", "w", `{"session_id":"`+id+`","request_id":"w","storage_mode":"server","message":"m"}`),
		of("get_conversation_context", "g", `{"session_id":"s","request_id":"r","max_tokens":9}`) + of("upload_complete", "g", `{}`) +
			of("chat_response", "g", `{}`) + of("pizza", "g", `{}`) + "{\n\n[1]\n",
	} {
		f.Add([]byte(seed))
	}
	s, err := ctxdir.Init(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	index, err := search.Open(f.Context(), s)
	if err != nil {
		f.Fatal(err)
	}
	defer index.Close()
	f.Fuzz(func(t *testing.T, b []byte) {
		lines := bytes.Split(b, []byte("\n"))
		if len(lines) > 200 {
			return
		}
		c, p, u := newChat(&model{}, &rows{}), newPipe(), user(s)
		u.Index = func(context.Context) (*search.Index, error) { return index, nil }
		ended := make(chan error)
		go func() { ended <- c.Serve(t.Context(), p, u) }()
		ends, asked := map[string]int{}, ""
		look := func(b []byte) {
			m, err := exchange.Decode(b)
			if err != nil {
				t.Fatalf("the server sends %s: %v", b, err)
			}
			switch a := m.Payload.(type) {
			case exchange.ContextRequest:
				asked = m.ID
			case exchange.ChatResponse:
				if a.Done {
					ends[m.ID]++
				}
			}
		}
		sent := map[string]int{}
		for _, line := range lines {
			line = bytes.ReplaceAll(line, []byte(`"%"`), []byte(`"`+asked+`"`))
			if m, err := exchange.Decode(line); err == nil {
				sent[m.ID]++
			}
			p.in <- line
			for more := true; more; {
				select {
				case b := <-p.out:
					look(b)
				default:
					more = false
				}
			}
		}
		close(p.in)
		for over := false; !over; {
			select {
			case b := <-p.out:
				look(b)
			case <-ended:
				over = true
			}
		}
		c.Close()
		for id, n := range ends {
			if n > sent[id] {
				t.Fatalf("%d ends of %d requests %q", n, sent[id], id)
			}
		}
	})
}
