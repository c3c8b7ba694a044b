package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/google/uuid"
)

// dial opens a connection of its own.
func (k *kit) dial() *net.TCPConn {
	k.Helper()
	conn, err := (&net.Dialer{}).DialContext(k.Context(), "tcp", k.host)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// dialSlow is dial for who does not read: little fits into the buffer of the connection.
func (k *kit) dialSlow() *net.TCPConn {
	k.Helper()
	conn := k.dial()
	if err := conn.SetReadBuffer(256 << 10); err != nil {
		k.Fatal(err)
	}
	return conn
}

// head is a request without its body.
func (k *kit) head(method, path string, length int) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n", method, path, k.host, token, length)
}

// TestManyConnections opens more connections than the server has room for. It closes the oldest ones, and still answers.
func TestManyConnections(t *testing.T) {
	k := newBoundKit(t, func(x *api.Server) { x.Bound(0, 20, 0) })
	id := k.context(1)
	var all []*net.TCPConn
	for range 100 {
		all = append(all, k.dial())
	}
	if a := k.do("GET", "/v1/contexts/"+id, ""); a.StatusCode != http.StatusOK {
		t.Error(a.Status)
	}
	if _, err := all[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest connection is still open")
	}
}

// TestSlowWriter sends the beginning of a body and then nothing. The connection ends, and nothing is stored.
func TestSlowWriter(t *testing.T) {
	k := newBoundKit(t, func(x *api.Server) {
		x.Bound(50*time.Millisecond, 0, 0)
		x.BoundOnly(func(r *http.Request) bool { return r.ContentLength == 1000 })
	})
	id := k.context(1)
	conn := k.dial()
	if _, err := io.WriteString(conn, k.head("POST", "/v1/contexts/"+id+"/branches/main/messages", 1000)+`{"role":"user"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(b), `"code":"timeout"`) ||
			strings.Contains(string(b), k.host) {
			t.Errorf("half of a body is answered with %s %s", resp.Status, b)
		}
	}
	if got := k.count(id); got != 1 {
		t.Errorf("%d messages, want 1", got)
	}
}

// count is the number of messages of a context.
func (k *kit) count(id string) int {
	k.Helper()
	return strings.Count(k.do("GET", "/v1/contexts/"+id+"/branches/main/messages?content=none", "").body, "\n")
}

// TestSlowReader asks for much and reads nothing: the connection ends, and others are answered meanwhile.
func TestSlowReader(t *testing.T) {
	k, slow := newSlowKit(t, 0)
	id := k.context(0)
	const size = 2 << 20
	body := strings.Repeat("x", size)
	for range 4 {
		k.append(id, body)
	}
	conn := k.dialSlow()
	if _, err := io.WriteString(conn, k.head("GET", "/v1/contexts/"+id+"/branches/main/messages?last=4", 0)); err != nil {
		t.Fatal(err)
	}
	if got := k.count(id); got != 4 {
		t.Errorf("%d messages beside a slow reader, want 4", got)
	}
	<-slow
	if n, _ := io.Copy(io.Discard, conn); n >= 4*size {
		t.Errorf("the slow reader got all %d bytes", n)
	}
}

// newSlowKit is a server that has little patience, and a channel that is closed when it gave up a request with a query.
func newSlowKit(t *testing.T, behind int64) (k *kit, slow chan struct{}) {
	t.Helper()
	slow = make(chan struct{})
	isSlow := func(r *http.Request) bool {
		return strings.Contains(r.URL.RawQuery, "last=4") || strings.Contains(r.URL.RawQuery, "after=1")
	}
	return newBoundKit(t, func(x *api.Server) {
		x.Bound(50*time.Millisecond, 0, behind)
		x.BoundOnly(isSlow)
		x.OnEnd(func(r *http.Request) {
			if isSlow(r) {
				close(slow)
			}
		})
	}), slow
}

// TestSlowFollower does not read its events. It is cut off, and never holds a writer up.
func TestSlowFollower(t *testing.T) {
	k, slow := newSlowKit(t, 1<<20)
	id := k.context(0)
	conn := k.dialSlow()
	request := strings.Replace(k.head("GET", "/v1/contexts/"+id+"/events?after=1", 0), "Content-Length: 0\r\n",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", 1)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReaderSize(conn, 16)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Fatal(line, err)
	}
	f := k.follow("/v1/contexts/" + id + "/events")
	text := strings.Repeat("x", 200_000)
	for range 40 {
		k.append(id, text)
		if l := f.next(); l.Record != "message" {
			t.Fatalf("%+v", l)
		}
	}
	<-slow
}

// TestDamagedContext damages one of two contexts: the other one is served as before, and the problem is told.
func TestDamagedContext(t *testing.T) {
	k := newKit(t, api.Options{})
	sound, damaged := k.context(3), k.context(3)
	if _, err := k.store.Archive(t.Context(), ctxdir.ArchiveOptions{Contexts: []uuid.UUID{k.id(damaged)}}); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(k.store.Info().Path, damaged, "segments", "*.zst"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		b[40+i] ^= 0xff // in the first frame
	}
	if err := os.WriteFile(segments[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ctxdir.Open(k.store.Info().Path) // it has nothing in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k = serve(t, s, api.Options{}, func(*api.Server) {})
	a := k.do("GET", "/v1/contexts/"+damaged+"/branches/main/messages", "")
	missing, lines := strings.Count(a.body, `"unavailable"`), strings.Count(a.body, "\n")
	if a.StatusCode != http.StatusOK || lines != 3 || missing == 0 || strings.Count(a.body, `"message":null`) != missing {
		t.Errorf("%s %s", a.Status, a.body)
	}
	for m := range strings.Lines(a.body) {
		if id := m[strings.Index(m, `"id":"`)+6:][:36]; strings.Contains(m, "unavailable") {
			if body := k.do("GET", "/v1/contexts/"+damaged+"/branches/main/messages/"+id+"/body", ""); body.problem(t) != "damaged" {
				t.Error(body.body)
			}
		}
	}
	if got := k.count(sound); got != 3 {
		t.Errorf("%d messages of the sound context", got)
	}
	k.append(sound, "more")
	if a := k.do("GET", "/v1/check?read_data=true", ""); !strings.Contains(a.body, `"record":"finding","context":"`+damaged) {
		t.Error(a.body)
	}
}

// TestBodies sends bodies that no operation can use.
func TestBodies(t *testing.T) {
	k := newBoundKit(t, func(*api.Server) {}, api.Options{MaxBody: 4 << 20})
	id := k.context(0)
	messages := "/v1/contexts/" + id + "/branches/main/messages"
	lines, document := "Content-Type: application/x-ndjson", "Content-Type: application/json"
	for _, test := range []struct {
		name, method, path, body, media, code string
	}{
		{"cut JSON", "POST", messages, `{"role":`, lines, "invalid"},
		{"no object", "POST", messages, `[1]`, lines, "invalid"},
		{"no line", "POST", messages, "\n \n", lines, "invalid"},
		{"second line", "POST", messages, "{\"role\":\"user\"}\n{\n", lines, "invalid"},
		{"no UTF-8", "POST", messages, "{\"role\":\"\xff\"}", lines, "invalid"},
		{"form", "POST", messages, `{"role":"user"}`, "Content-Type: application/x-www-form-urlencoded", "media_type"},
		{"text", "POST", messages, `{"role":"user"}`, "Content-Type: text/plain", "media_type"},
		{"too large", "POST", messages, `{"content":"` + strings.Repeat("x", 5<<20) + `"}`, lines, "too_large"},
		{"too many", "POST", messages, strings.Repeat("{}\n", 10_001), lines, "invalid"},
		{"envelope without a message", "POST", messages + "?envelope=true", `{"id":"01900000-0000-7000-8000-00000000000a"}`, lines, "invalid"},
		{"envelope with another member", "POST", messages + "?envelope=true", `{"message":{},"x":1}`, lines, "invalid"},
		{"no id", "POST", messages + "?envelope=true", `{"id":"x","message":{}}`, lines, "invalid"},
		{"no time", "POST", messages + "?envelope=true", `{"created_at":"soon","message":{}}`, lines, "invalid"},
		{"another position", "POST", messages + "?position=7", `{}`, lines, "position"},
		{"another sequence", "POST", messages + "?sequence=99999", `{}`, lines, "position"},
		{"unknown parameter", "POST", messages + "?positions=7", `{}`, lines, "invalid"},
		{"parameter twice", "POST", messages + "?position=7&position=8", `{}`, lines, "invalid"},
		{"unknown member", "POST", "/v1/contexts", `{"titel":"x"}`, document, "invalid"},
		{"two documents", "POST", "/v1/contexts", `{}{}`, document, "invalid"},
		{"empty document", "POST", "/v1/contexts", ``, document, "invalid"},
		{"large document", "POST", "/v1/contexts", `{"title":"` + strings.Repeat("x", 2<<20) + `"}`, document, "too_large"},
		{"bad branch", "POST", "/v1/contexts/" + id + "/branches", `{"name":""}`, document, "invalid"},
		{"branch of a path", "POST", "/v1/contexts/" + id + "/branches", `{"name":"a","from":"../../x"}`, document, "not_found"},
		{"far position", "POST", "/v1/contexts/" + id + "/branches", `{"name":"a","at":9}`, document, "position"},
		{"unknown change", "POST", "/v1/contexts/" + id + "/commit", `{"changes":[{"op":"erase"}]}`, document, "invalid"},
		{"no change", "POST", "/v1/contexts/" + id + "/commit", `{"changes":[]}`, document, "invalid"},
		{"moment of no type", "POST", "/v1/contexts/" + id + "/moments", `{"type":"x","content":"y"}`, document, "invalid"},
		{"budget", "POST", "/v1/assemble", `{"query":"x","max_tokens":-1}`, document, "invalid"},
		{"workspace", "POST", "/v1/assemble", `{"query":"x","root":"/"}`, document, "invalid"},
		{"item of a path", "POST", "/v1/trash/..%2f..%2fx/restore", ``, document, "invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := k.do(test.method, test.path, test.body, test.media)
			if got := a.problem(t); got != test.code {
				t.Errorf("%s: %s, want %s: %s", a.Status, got, test.code, a.body)
			}
		})
	}
	if got := k.count(id); got != 0 {
		t.Errorf("%d messages are stored", got)
	}
}
