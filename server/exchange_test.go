package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/chat"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/meter"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// script is a model that says what it is told to. It keeps what it was asked.
type script struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	answer func(question string, say func(text string)) // in place of the usual one
}

func newScript(t *testing.T) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer model-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, string(b))
		n, answer := len(s.asked), s.answer
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(text string) {
			piece := map[string]any{"choices": []any{map[string]any{"delta": map[string]string{"content": text}}}}
			line, _ := json.Marshal(piece)
			fmt.Fprintf(w, "data: %s\n\n", line)
			w.(http.Flusher).Flush()
		}
		if answer != nil {
			answer(string(b), say)
		} else {
			for _, text := range []string{"CANARY-ANSWER ", "number ", fmt.Sprint(n), "."} {
				say(text)
			}
		}
		fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":7}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *script) model() *chat.Model {
	return &chat.Model{URL: s.URL + "/v1", Name: "scripted", Key: "model-key"}
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *script) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[len(s.asked)-1]
}

// laptop is the folder of an agent, with a conversation full of canaries.
type laptop struct {
	store  *ctxdir.Store
	c      *ctxdir.Context
	client *exchange.Client
}

func (k *kit) laptop(token string, client *http.Client) *laptop {
	k.Helper()
	s, err := ctxdir.Init(k.TempDir())
	if err != nil {
		k.Fatal(err)
	}
	source := exchange.NewLocal(s)
	l := &laptop{store: s, client: exchange.NewClient(exchange.ClientOptions{
		URL: k.url, Token: token, Source: source, HTTP: client, Attempts: 8,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})}
	k.Cleanup(func() {
		_ = l.client.Close()
		_ = source.Close()
		_ = s.Close()
	})
	l.c, err = s.Create(k.Context(), ctxdir.Metadata{Title: "CANARY-TITLE", Labels: map[string]string{"project": "/home/canary/heron"}})
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = l.c.Close() })
	for i := range 4 {
		l.say(k, "user", fmt.Sprintf("Why does the heron queue wait? See /home/canary/heron/main%d.go and `canaryCode(%d)`.", i, i))
		l.say(k, "assistant", "The worker failed before it was ready.\n```go\nfunc canaryCode() {}\n```\n")
	}
	return l
}

func (l *laptop) say(k *kit, role, text string) {
	k.Helper()
	d, err := ctxdir.NewDraft(map[string]string{"role": role, "content": text})
	if err == nil {
		_, err = l.c.Active().Append(k.Context(), d)
	}
	if err != nil {
		k.Fatal(err)
	}
}

func (l *laptop) request(id, mode string) exchange.ChatRequest {
	return exchange.ChatRequest{
		SessionID: l.c.ID().String(), RequestID: id, StorageMode: mode, Message: "CANARY-QUESTION " + id + ": why does it wait?",
	}
}

// rows returns what the server keeps of the requests of a user in local mode.
func (k *kit) rows(name string) []meter.Row {
	k.Helper()
	u, err := k.users.Find(k.Context(), name)
	if err != nil {
		k.Fatal(err)
	}
	all, err := k.stores.(server.UsageStores).Usage().List(k.Context(), u.ID)
	if err != nil {
		k.Fatal(err)
	}
	return all
}

// TestLocalMode: the model gets a context without code, paths and names, and the server keeps role, time and number of tokens:
// nothing else is in files, in the database and its log, in the log of the server and in metrics.
func TestLocalMode(t *testing.T) { each(t, testLocalMode) }

func testLocalMode(t *testing.T, at backend) {
	s := newScript(t)
	k := newKit(t, at, server.Options{Model: s.model(), Audit: server.AuditAll})
	l := k.laptop(k.tokens["ada"], nil)
	var streamed string
	a, err := l.client.Ask(t.Context(), l.request("request-1", ctxdir.StorageLocal), func(text string) { streamed += text })
	if err != nil || a.Text != "CANARY-ANSWER number 1." || streamed != a.Text || a.Usage != (exchange.Usage{Prompt: 70, Completion: 7}) {
		t.Fatalf("%+v, %q, %v", a, streamed, err)
	}
	prompt := s.last()
	if !strings.Contains(prompt, "The worker failed before it was ready") || !strings.Contains(prompt, "CANARY-QUESTION request-1") {
		t.Errorf("the model is asked %s", prompt)
	}
	for _, canary := range []string{"canaryCode", "/home", "heron", "func ", "main1", "CANARY-TITLE"} {
		if strings.Contains(strings.ReplaceAll(prompt, "CANARY-QUESTION", ""), canary) {
			t.Errorf("%q is in what the model is asked: %s", canary, prompt)
		}
	}
	if again, err := l.client.Ask(t.Context(), l.request("request-1", ctxdir.StorageLocal), nil); err != nil || again != a || s.count() != 1 {
		t.Errorf("the same request again: %+v, %v, %d calls", again, err, s.count())
	}
	rows := k.rows("ada")
	if len(rows) != 2 || rows[0].Role != "user" || rows[0].Tokens != 70 || rows[1].Role != "assistant" || rows[1].Tokens != 7 ||
		rows[0].At.IsZero() {
		t.Errorf("the server keeps %+v", rows)
	}
	if other := k.rows("bob"); len(other) > 0 {
		t.Errorf("of another user: %+v", other)
	}
	if a := k.do(k.tokens["ada"], "GET", "/v1/contexts", ""); strings.Contains(a.body, `"id"`) {
		t.Errorf("the server has a conversation: %s", a.body)
	}
	canaries := []string{"CANARY", "canary", "heron", l.c.ID().String(), "The worker failed", "request-1"}
	dir := at.dir
	if at.url != "" {
		dir = pgtest.Flushed(t)
	}
	absent(t, dir, canaries)
	for what, text := range map[string]string{"the log": k.log.String(), "metrics": k.metrics()} {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				t.Errorf("%s have %q", what, canary)
			}
		}
	}
	if !strings.Contains(k.metrics(), `operation="GET /v1/exchange"`) && !strings.Contains(k.metrics(), "ctxdir_requests_running 1") {
		t.Error("the connection is not counted")
	}
}

// absent fails if a file has a canary.
func absent(t *testing.T, dir string, canaries []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreMissing(err)
		}
		files++
		b, err := os.ReadFile(path)
		for _, canary := range canaries {
			if bytes.Contains(b, []byte(canary)) {
				t.Errorf("%s has %q", path, canary)
			}
		}
		return ignoreMissing(err)
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
}

// TestServerMode: the server assembles the context itself, and appends question and answer once.
func TestServerMode(t *testing.T) { each(t, testServerMode) }

func testServerMode(t *testing.T, at backend) {
	s := newScript(t)
	k := newKit(t, at, server.Options{Model: s.model()})
	l := k.laptop(k.tokens["ada"], nil)
	done, err := l.client.Upload(t.Context(), l.c)
	if err != nil || len(done.Heads) != 1 || done.Heads[0].Len != 8 {
		t.Fatalf("upload: %+v, %v", done, err)
	}
	a, err := l.client.Ask(t.Context(), l.request("r1", ctxdir.StorageServer), nil)
	if err != nil || a.Text != "CANARY-ANSWER number 1." {
		t.Fatalf("%+v, %v", a, err)
	}
	if !strings.Contains(s.last(), "canaryCode(3)") || strings.Count(s.last(), "CANARY-QUESTION r1") != 1 {
		t.Errorf("the model is asked %s", s.last())
	}
	if again, err := l.client.Ask(t.Context(), l.request("r1", ctxdir.StorageServer), nil); err != nil || again != a || s.count() != 1 {
		t.Errorf("the same request again: %+v, %v, %d calls", again, err, s.count())
	}
	id := l.c.ID()
	r := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id.String()+"/branches/main/messages?from=8", "")
	question, answer := exchange.QuestionID(id, "r1").String(), exchange.AnswerID(id, "r1").String()
	for _, want := range []string{`"position":8`, `"position":9`, question, answer} {
		if strings.Count(r.body, want) != 1 || strings.Contains(r.body, `"position":10`) {
			t.Errorf("%s is not once in %s", want, r.body)
		}
	}
	other := l.request("r1", ctxdir.StorageServer)
	other.Message = "another question"
	var e *exchange.Error
	if _, err := l.client.Ask(t.Context(), other, nil); !errors.As(err, &e) || e.Code != exchange.CodeConflict {
		t.Errorf("another question with the same id: %v", err)
	}
	if len(k.rows("ada")) > 0 {
		t.Errorf("server mode keeps numbers besides: %v", k.rows("ada"))
	}
	if at.url != "" {
		absent(t, pgtest.Flushed(t), []string{"CANARY", "canary", "heron", id.String(), "The worker failed"})
	}
	// A session of another system begins with its first request. Bob has neither.
	new := exchange.ChatRequest{SessionID: "session 7", RequestID: "r1", StorageMode: ctxdir.StorageServer, Message: "Hello."}
	if _, err := l.client.Ask(t.Context(), new, nil); err != nil {
		t.Error(err)
	}
	if r := k.do(k.tokens["ada"], "GET", "/v1/contexts/session%207/branches/main/messages", ""); strings.Count(r.body, `"position"`) != 2 {
		t.Errorf("a new session has %s", r.body)
	}
	bob := k.laptop(k.tokens["bob"], nil)
	calls := s.count()
	_, err = bob.client.Ask(t.Context(), l.request("r1", ctxdir.StorageServer), nil)
	if !errors.As(err, &e) || e.Code != exchange.CodeNotFound {
		t.Errorf("bob asks in a conversation of ada: %v", err)
	}
	if s.count() != calls {
		t.Error("the model was asked for bob")
	}
}

// TestUpload uploads a conversation in parts, goes on, and notices what is not the same.
func TestUpload(t *testing.T) { each(t, testUpload) }

func testUpload(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	l := k.laptop(k.tokens["ada"], nil)
	for i := range 3 {
		l.say(k, "user", strings.Repeat(fmt.Sprintf("part <%d> & ", i), 25_000))
	}
	for range 2 { // again: nothing is appended
		if done, err := l.client.Upload(t.Context(), l.c); err != nil || done.Heads[0].Len != 11 {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	l.say(k, "assistant", "one more")
	if done, err := l.client.Upload(t.Context(), l.c); err != nil || done.Heads[0].Len != 12 {
		t.Fatalf("%+v, %v", done, err)
	}
	path := "/v1/contexts/" + l.c.ID().String() + "/branches/main/messages"
	if a := k.do(k.tokens["ada"], "POST", path, `{"role":"user","content":"on the server"}`); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	l.say(k, "user", "on the laptop")
	if _, err := l.client.Upload(t.Context(), l.c); !errors.Is(err, exchange.ErrUnconfirmed) {
		t.Errorf("both sides went on: %v", err)
	}
}

// brittle is a network on which a connection breaks after a number of reads and writes.
type brittle struct {
	left atomic.Int64 // of the next connection; negative: it lasts
}

type brittleConn struct {
	net.Conn
	left int64
	n    *atomic.Int64
}

func (b *brittle) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &brittleConn{c, b.left.Swap(-1), new(atomic.Int64)}, err
	}}}
}

func (c *brittleConn) use() error {
	if c.left >= 0 && c.n.Add(1) > c.left {
		_ = c.Close()
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (c *brittleConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if broken := c.use(); broken != nil {
		return 0, broken
	}
	return n, err
}

func (c *brittleConn) Write(p []byte) (int, error) {
	if err := c.use(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// TestBrokenConnections breaks the connection at every read and write of a request, which the client then repeats: the model
// is asked once, the answer is the same, and question and answer, or their numbers, are kept once.
func TestBrokenConnections(t *testing.T) { each(t, testBrokenConnections) }

func testBrokenConnections(t *testing.T, at backend) {
	s := newScript(t)
	k := newKit(t, at, server.Options{Model: s.model()})
	const cuts = 16
	for _, mode := range []string{ctxdir.StorageLocal, ctxdir.StorageServer} {
		first := k.laptop(k.tokens["ada"], nil)
		if _, err := first.client.Upload(t.Context(), first.c); err != nil {
			t.Fatal(err)
		}
		for cut := range int64(cuts) {
			network := &brittle{}
			network.left.Store(cut)
			before, rows := s.count(), len(k.rows("ada"))
			source := exchange.NewLocal(first.store)
			c := exchange.NewClient(exchange.ClientOptions{
				URL: k.url, Token: k.tokens["ada"], Source: source, HTTP: network.client(),
				Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
			})
			var text string
			a, err := c.Ask(t.Context(), first.request(fmt.Sprint("cut", cut), mode), func(piece string) { text += piece })
			if err != nil || text != a.Text || a.Text != fmt.Sprintf("CANARY-ANSWER number %d.", before+1) {
				t.Errorf("%s, cut %d: %+v, %q, %v", mode, cut, a, text, err)
			}
			if s.count() != before+1 {
				t.Errorf("%s, cut %d: the model was asked %d times", mode, cut, s.count()-before)
			}
			if n := len(k.rows("ada")) - rows; mode == ctxdir.StorageLocal && n != 2 || mode == ctxdir.StorageServer && n != 0 {
				t.Errorf("%s, cut %d: %d rows more", mode, cut, n)
			}
			_ = c.Close()
			_ = source.Close()
		}
		want := 8
		if mode == ctxdir.StorageServer {
			want += 2 * cuts
		}
		r := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+first.c.ID().String()+"/branches/main/messages?content=none", "")
		if n := strings.Count(r.body, `"position"`); n != want {
			t.Errorf("%s: the conversation has %d messages, not %d", mode, n, want)
		}
	}
}

// TestTwoClients lets two agents with one session ask at the same time: the same request, and others.
func TestTwoClients(t *testing.T) { each(t, testTwoClients) }

func testTwoClients(t *testing.T, at backend) {
	s := newScript(t)
	k := newKit(t, at, server.Options{Model: s.model()})
	for _, mode := range []string{ctxdir.StorageLocal, ctxdir.StorageServer} {
		before, rows := s.count(), len(k.rows("ada"))
		one := k.laptop(k.tokens["ada"], nil)
		if _, err := one.client.Upload(t.Context(), one.c); err != nil {
			t.Fatal(err)
		}
		source := exchange.NewLocal(one.store)
		two := exchange.NewClient(exchange.ClientOptions{URL: k.url, Token: k.tokens["ada"], Source: source})
		var mu sync.Mutex
		answers := map[string]map[string]bool{}
		var all sync.WaitGroup
		for i, c := range []*exchange.Client{one.client, two} {
			for _, id := range []string{"both", fmt.Sprint("own", i)} {
				all.Go(func() {
					a, err := c.Ask(t.Context(), one.request(id, mode), nil)
					if err != nil {
						t.Errorf("%s %s: %v", mode, id, err)
					}
					mu.Lock()
					defer mu.Unlock()
					if answers[id] == nil {
						answers[id] = map[string]bool{}
					}
					answers[id][a.Text] = true
				})
			}
		}
		all.Wait()
		if n := s.count() - before; n != 3 || len(answers["both"]) != 1 {
			t.Errorf("%s: %d calls, answers %v", mode, n, answers)
		}
		if n := len(k.rows("ada")) - rows; mode == ctxdir.StorageLocal && n != 6 {
			t.Errorf("%d rows", n)
		}
		if mode == ctxdir.StorageServer { // each question is followed by its answer
			r := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+one.c.ID().String()+"/branches/main/messages?from=8", "")
			lines := strings.Split(strings.TrimSpace(r.body), "\n")
			for i := 0; i+1 < len(lines); i += 2 {
				if !strings.Contains(lines[i], "CANARY-QUESTION") || !strings.Contains(lines[i+1], "CANARY-ANSWER") {
					t.Errorf("message %d: %s %s", i, lines[i], lines[i+1])
				}
			}
			if len(lines) != 6 {
				t.Errorf("%d messages", len(lines))
			}
		}
		_ = two.Close()
		_ = source.Close()
	}
}

// TestExchangeRefused: who may not, and what cannot be answered.
func TestExchangeRefused(t *testing.T) { each(t, testExchangeRefused) }

func testExchangeRefused(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	reader := k.token("ada", users.TokenOptions{Scope: users.Read})
	upgrade := func(token, origin string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.url+exchange.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
			"Sec-WebSocket-Protocol": "ctxdir.v1, ctxdir.token." + token, "Origin": origin,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		token, origin string
		want          int
	}{
		{k.tokens["ada"], "", 101}, {reader, "", 403}, {k.tokens["ada"], "http://evil.example", 403}, {strings.Repeat("A", 64), "", 401},
	} {
		if got := upgrade(c.token, c.origin); got != c.want {
			t.Errorf("token %.8s…, origin %q: %d, not %d", c.token, c.origin, got, c.want)
		}
	}
	if a := k.do(k.tokens["ada"], "GET", exchange.Path, ""); a.status != http.StatusUpgradeRequired {
		t.Errorf("without an upgrade: %d", a.status)
	}
	l := k.laptop(k.tokens["ada"], nil)
	var e *exchange.Error
	for _, mode := range []string{ctxdir.StorageLocal, ctxdir.StorageServer} {
		if _, err := l.client.Ask(t.Context(), l.request("r", mode), nil); !errors.As(err, &e) || e.Code != exchange.CodeNoModel {
			t.Errorf("%s without a model: %v", mode, err)
		}
	}
}

// TestExchangeEnds revokes the token of a connection.
func TestExchangeEnds(t *testing.T) { each(t, testExchangeEnds) }

func testExchangeEnds(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	k.server.RecheckEvery(5 * time.Millisecond)
	token, made, err := k.users.NewToken(t.Context(), "ada", users.TokenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), k.url+exchange.Path, &websocket.DialOptions{ //nolint:bodyclose // the connection has it
		Subprotocols: []string{"ctxdir.v1", "ctxdir.token." + token},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.users.Revoke(t.Context(), "ada", made.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err = conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the connection of a revoked token: %v", err)
	}
}

// TestErasedUsage: an erased user leaves nothing of requests in local mode.
func TestErasedUsage(t *testing.T) { each(t, testErasedUsage) }

func testErasedUsage(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	u, err := k.users.Find(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	log := k.stores.(server.UsageStores).Usage()
	rows := meter.New(time.Now(), 3, 4)
	for range 2 { // a repeated write adds nothing
		if err := log.Add(t.Context(), u.ID, rows); err != nil {
			t.Fatal(err)
		}
	}
	if got := k.rows("ada"); len(got) != 2 || got[0] != rows[0] || got[1] != rows[1] {
		t.Errorf("%+v instead of %+v", got, rows)
	}
	for _, f := range []func(context.Context, string) (users.User, error){k.users.Remove, k.users.Erase} {
		if _, err := f(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := log.List(t.Context(), u.ID); err != nil || len(got) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := log.List(t.Context(), uuid.New()); err != nil || len(got) > 0 {
		t.Errorf("of nobody: %+v, %v", got, err)
	}
}
