package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/ctxdir/ctxdir/web"
)

// kit is a server with the users ada and bob.
type kit struct {
	*testing.T
	dir    string
	users  *users.Users
	server *server.Server
	url    string
	tokens map[string]string // by the name of the user
	log    *lines
}

// lines is what was logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newKit(t *testing.T, o server.Options) *kit {
	t.Helper()
	k := &kit{T: t, dir: t.TempDir(), tokens: map[string]string{}, log: &lines{}}
	var err error
	if k.users, err = users.OpenFiles(k.dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ada", "bob"} {
		if _, err := k.users.Add(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		k.tokens[name] = k.token(name, users.TokenOptions{})
	}
	o.API.Page, o.API.Log = web.Files(), slog.New(slog.NewJSONHandler(k.log, nil))
	if k.server, err = server.New(k.users, server.Folders(k.dir), o); err != nil {
		t.Fatal(err)
	}
	l, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k.url = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- api.Run(ctx, l, nil, k.server) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := k.users.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k *kit) token(name string, o users.TokenOptions) string {
	k.Helper()
	token, _, err := k.users.NewToken(k.Context(), name, o)
	if err != nil {
		k.Fatal(err)
	}
	return token
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request with a token, none if that is empty.
func (k *kit) do(token, method, path, body string) answer {
	k.Helper()
	r, err := http.NewRequestWithContext(k.Context(), method, k.url+path, strings.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return k.send(r)
}

func (k *kit) send(r *http.Request) answer {
	k.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		k.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		k.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// create makes a context with a message, and returns its id.
func (k *kit) create(token, title, text string) string {
	k.Helper()
	a := k.do(token, "POST", "/v1/contexts", `{"title":"`+title+`"}`)
	var c struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &c); err != nil || a.status != http.StatusCreated {
		k.Fatalf("create: %d %s", a.status, a.body)
	}
	a = k.do(token, "POST", "/v1/contexts/"+c.ID+"/branches/main/messages", `{"message":{"role":"user","content":"`+text+`"}}`)
	if a.status != http.StatusCreated {
		k.Fatalf("append: %d %s", a.status, a.body)
	}
	return c.ID
}

// metrics returns the metrics as the operator gets them.
func (k *kit) metrics() string {
	k.Helper()
	w := httptest.NewRecorder()
	k.server.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(k.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for tick, end := time.NewTicker(5*time.Millisecond), time.After(time.Minute); ; {
		if holds() {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// serve serves another handler until the test ends.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
