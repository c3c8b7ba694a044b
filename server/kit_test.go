package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/ctxdir/ctxdir/web"
	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// kit is a server with the users ada and bob.
type kit struct {
	*testing.T
	users  *users.Users
	stores server.Stores
	server *server.Server
	url    string
	tokens map[string]string // by the name of the user
	log    *lines

	visible []uuid.UUID // contexts that a token of a project has
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

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// backend is where users and stores are.
type backend struct {
	dir    string
	url    string // of a database; empty for the folder
	master pgfs.Master
	apart  bool
	bucket bucket.Bucket
	failed func(error)
}

// each runs a test over a folder and over a database.
func each(t *testing.T, test func(t *testing.T, at backend)) {
	t.Run("folders", func(t *testing.T) { test(t, backend{dir: t.TempDir()}) })
	t.Run("database", func(t *testing.T) { test(t, newDatabase(t)) })
}

func newDatabase(t *testing.T) backend {
	t.Helper()
	_, url := pgtest.Empty(t)
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	key, err := aead.New(h)
	if err != nil {
		t.Fatal(err)
	}
	return backend{url: url, master: func() (tink.AEAD, error) { return key, nil }}
}

// open returns the users, who they may be, and their stores, until the test ends.
func (b backend) open(t *testing.T) (*users.Users, server.Directory, server.Stores) {
	t.Helper()
	if b.url == "" {
		all, err := users.OpenFiles(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := all.Close(); err != nil {
				t.Error(err)
			}
		})
		return all, all, server.Folders(b.dir)
	}
	d, err := server.NewDatabase(t.Context(), b.url, server.DatabaseOptions{
		Master: b.master, Apart: b.apart, Bucket: b.bucket, Failed: b.failed, Damaged: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d.Users(), d, d
}

func newKit(t *testing.T, at backend, o server.Options) *kit {
	t.Helper()
	k := joinKit(t, at, o)
	for _, name := range []string{"ada", "bob"} {
		if _, err := k.users.Add(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		k.tokens[name] = k.token(name, users.TokenOptions{})
	}
	return k
}

// joinKit is a server for users who are there.
func joinKit(t *testing.T, at backend, o server.Options) *kit {
	t.Helper()
	k := &kit{T: t, tokens: map[string]string{}, log: &lines{}}
	var directory server.Directory
	k.users, directory, k.stores = at.open(t)
	var err error
	o.Inviting = k.users
	o.API.Page, o.API.Log = web.Files(), slog.New(slog.NewJSONHandler(k.log, nil))
	if k.server, err = server.New(directory, k.stores, o); err != nil {
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
	a = k.do(token, "POST", "/v1/contexts/"+c.ID+"/branches/main/messages", `{"role":"user","content":"`+text+`"}`)
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
