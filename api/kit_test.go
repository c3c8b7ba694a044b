package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/google/uuid"
)

const token = "0123456789abcdef0123456789abcdef"

// kit is a server that listens.
type kit struct {
	*testing.T
	store *ctxdir.Store
	host  string
	stop  context.CancelFunc
	ended chan error
}

func newKit(t *testing.T, o api.Options) *kit {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return serve(t, s, o, func(*api.Server) {})
}

// newBoundKit is a server with other limits.
func newBoundKit(t *testing.T, bound func(*api.Server), o ...api.Options) *kit {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return serve(t, s, append(o, api.Options{})[0], bound)
}

func serve(t *testing.T, s *ctxdir.Store, o api.Options, bound func(*api.Server)) *kit {
	t.Helper()
	o.Token = token
	server, err := api.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	bound(server)
	l, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	k := &kit{T: t, store: s, host: l.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() { k.ended <- server.Serve(ctx, l, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-k.ended; err != nil {
			t.Error(err)
		}
		k.ended <- nil
	})
	return k
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

// problem is the code in the body of an answer.
func (a *answer) problem(t *testing.T) string {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%s is no problem: %.200s %v", a.Status, a.body, err)
	}
	if p.Status != a.StatusCode || p.Type != "/docs#"+p.Code || p.Detail == "" {
		t.Errorf("problem of %s: %+v", a.Status, p)
	}
	return p.Code
}

// do sends a request with the token; a header "-Name" removes one, "Name: value" sets one.
func (k *kit) do(method, path, body string, headers ...string) *answer {
	k.Helper()
	r, err := http.NewRequestWithContext(k.Context(), method, "http://"+k.host+path, strings.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		if name, ok := strings.CutPrefix(h, "-"); ok {
			r.Header.Del(name)
			continue
		}
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		k.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		k.Fatal(err)
	}
	return &answer{resp, string(b)}
}

// raw sends bytes on a connection of its own, and returns the first line of the answer.
func (k *kit) raw(request string) string {
	k.Helper()
	conn, err := (&net.Dialer{}).DialContext(k.Context(), "tcp", k.host)
	if err != nil {
		k.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		k.Fatal(err)
	}
	b, _ := io.ReadAll(conn)
	line, _, _ := strings.Cut(string(b), "\r\n")
	return line
}

// context makes a context with messages, and returns its id.
func (k *kit) context(messages int) string {
	k.Helper()
	c, err := k.store.Create(k.Context(), ctxdir.Metadata{Title: "kit"})
	if err != nil {
		k.Fatal(err)
	}
	var drafts []ctxdir.Draft
	for i := range messages {
		drafts = append(drafts, ctxdir.Draft{Body: fmt.Appendf(nil, `{"role":"user","content":"message %d"}`, i)})
	}
	if _, err := c.Active().AppendBatch(k.Context(), drafts); err != nil {
		k.Fatal(err)
	}
	if err := c.Close(); err != nil {
		k.Fatal(err)
	}
	return c.ID().String()
}

func (k *kit) id(text string) uuid.UUID {
	k.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		k.Fatal(err)
	}
	return id
}
