package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/google/uuid"
)

// follower is the client of a WebSocket.
type follower struct {
	*testing.T
	conn *websocket.Conn
	seq  uint64 // of the newest whole commit
}

// line is what the tests want to know of an event.
type line struct {
	Record, Event, ID, Title string
	Position                 *int64
	Seq                      uint64
	More                     bool
	Bytes                    *int64
	Message                  struct{ Content string }
}

func (k *kit) follow(path string) *follower {
	k.Helper()
	//nolint:bodyclose // Dial closes it
	conn, resp, err := websocket.Dial(k.Context(), "ws://"+k.host+path, &websocket.DialOptions{
		Subprotocols: []string{"ctxdir.v1", "ctxdir.token." + token},
	})
	if err != nil {
		k.Fatal(err, resp)
	}
	if conn.Subprotocol() != "ctxdir.v1" {
		k.Errorf("subprotocol %q", conn.Subprotocol())
	}
	conn.SetReadLimit(1 << 20)
	k.Cleanup(func() { _ = conn.CloseNow() })
	f := &follower{T: k.T, conn: conn}
	if l := f.next(); l.Record != "ready" {
		k.Fatalf("first line: %+v", l)
	}
	return f
}

// next returns the next event.
func (f *follower) next() (l line) {
	f.Helper()
	for {
		_, b, err := f.conn.Read(f.Context())
		if err != nil {
			f.Fatal(err)
		}
		if err := json.Unmarshal(b, &l); err != nil {
			f.Fatalf("%v: %s", err, b)
		}
		if l.Record != "heartbeat" {
			break
		}
	}
	if !l.More {
		f.seq = max(f.seq, l.Seq)
	}
	return l
}

// closed returns the status of the close frame, after any events.
func (f *follower) closed() (code websocket.StatusCode, reason string) {
	f.Helper()
	for {
		if _, _, err := f.conn.Read(f.Context()); err != nil {
			var e websocket.CloseError
			if !errors.As(err, &e) {
				f.Fatal(err)
			}
			return e.Code, e.Reason
		}
	}
}

func (k *kit) append(id, text string) {
	k.Helper()
	k.appendBody(id, fmt.Sprintf(`{"role":"user","content":%q}`, text))
}

func (k *kit) appendBody(id, body string) {
	k.Helper()
	if a := k.do("POST", "/v1/contexts/"+id+"/branches/main/messages", body); a.StatusCode != http.StatusCreated {
		k.Fatal(a.Status, a.body)
	}
}

// TestFollow follows a context from now on, again from a number, and from its beginning: each commit comes once.
func TestFollow(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(3)
	path := "/v1/contexts/" + id + "/events"
	f := k.follow(path)
	k.append(id, "a")
	if l := f.next(); l.Record != "message" || l.Message.Content != "a" || *l.Position != 3 || l.Seq == 0 {
		t.Errorf("%+v", l)
	}
	if a := k.do("PATCH", "/v1/contexts/"+id, `{"title":"new"}`); a.StatusCode != http.StatusOK {
		t.Fatal(a.body)
	}
	if l := f.next(); l.Record != "metadata" || l.Title != "new" {
		t.Errorf("%+v", l)
	}
	seq := f.seq
	_ = f.conn.CloseNow()
	k.append(id, "b")
	k.append(id, "c")

	again := k.follow(fmt.Sprintf("%s?after=%d", path, seq))
	for _, want := range []string{"b", "c"} {
		if l := again.next(); l.Message.Content != want {
			t.Errorf("after %d: %+v, want %s", seq, l, want)
		}
	}
	k.append(id, "d")
	if l := again.next(); l.Message.Content != "d" {
		t.Errorf("%+v", l)
	}
	k.append(id, strings.Repeat("x", 300_000))
	if l := again.next(); l.Bytes == nil || *l.Bytes < 300_000 || l.Message.Content != "" {
		t.Errorf("a large message: %+v", l)
	}
	if a := k.do("DELETE", "/v1/contexts/"+id, ""); a.StatusCode != http.StatusOK {
		t.Fatal(a.body)
	}
	if code, reason := again.closed(); code != 4002 || !strings.Contains(reason, fmt.Sprintf("after=%d", again.seq)) {
		t.Errorf("closed with %d %q, want 4002 after %d", code, reason, again.seq)
	}
}

func TestFollowStore(t *testing.T) {
	k := newKit(t, api.Options{})
	f := k.follow("/v1/events")
	id := k.context(0)
	if l := f.next(); l.Record != "context" || l.Event != "created" || l.ID != id {
		t.Errorf("%+v", l)
	}
	k.append(id, "hello")
	if l := f.next(); l.Record != "message" || l.Message.Content != "hello" {
		t.Errorf("%+v", l)
	}
}

// TestFollowStoreLater follows the store after another follower has seen a context with larger numbers of commits: the
// numbers of one context say nothing of another.
func TestFollowStoreLater(t *testing.T) {
	k := newKit(t, api.Options{})
	long, short := k.context(1), k.context(1)
	first := k.follow("/v1/events")
	for _, text := range []string{"1", "2", "3"} {
		k.append(long, text)
		if l := first.next(); l.Message.Content != text {
			t.Fatalf("%+v", l)
		}
	}
	second := k.follow("/v1/events")
	k.append(short, "b")
	k.append(long, "c")
	for name, f := range map[string]*follower{"first": first, "second": second} {
		// Nothing orders the commits of two contexts.
		if got := []string{f.next().Message.Content, f.next().Message.Content}; !slices.Contains(got, "b") || !slices.Contains(got, "c") {
			t.Errorf("the %s follower has %q, want b and c", name, got)
		}
	}
}

// TestFollowersAndWriters lets followers come and go beside writers. Each sees every commit after the number that it
// names exactly once.
func TestFollowersAndWriters(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(0)
	c, err := k.store.Open(t.Context(), uuid.MustParse(id))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := c.Summary().Sequence
	const writers, each = 4, 50
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				body := fmt.Appendf(nil, `{"role":"user","content":"%d/%d"}`, w, i)
				if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: body}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 8 {
		group.Go(func() {
			position, after := int64(0), start
			for position < writers*each {
				f := k.follow(fmt.Sprintf("/v1/contexts/%s/events?after=%d", id, after))
				for range 20 + 10*n {
					l := f.next()
					if l.Record != "message" {
						t.Errorf("%+v", l)
						return
					}
					if *l.Position != position {
						t.Errorf("follower %d: position %d, want %d", n, *l.Position, position)
						return
					}
					if position++; position == writers*each {
						break
					}
				}
				after = f.seq
				_ = f.conn.CloseNow()
			}
		})
	}
	group.Wait()
}

func TestFollowProblems(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(1)
	upgrade := []string{
		"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
	}
	for _, test := range []struct {
		path    string
		headers []string
		status  int
	}{
		{"/v1/contexts/" + id + "/events", nil, http.StatusUpgradeRequired},
		{"/v1/contexts/" + uuid.NewString() + "/events", upgrade, 404},
		{"/v1/contexts/" + id + "/events?after=x", upgrade, 400},
		{"/v1/contexts/" + id + "/events", append([]string{"-Authorization"}, upgrade...), 401},
		{"/v1/contexts/" + id + "/events", append([]string{"Origin: https://evil.test"}, upgrade...), 403},
	} {
		if a := k.do("GET", test.path, "", test.headers...); a.StatusCode != test.status || a.problem(t) == "" {
			t.Errorf("%s %v: %s", test.path, test.headers, a.Status)
		}
	}
}

// TestEnd ends a server that has a follower, and a request under way.
func TestEnd(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(1)
	f := k.follow("/v1/contexts/" + id + "/events")
	k.stop()
	if code, reason := f.closed(); code != websocket.StatusGoingAway || !strings.Contains(reason, "after=") {
		t.Errorf("closed with %d %q", code, reason)
	}
	if err := <-k.ended; err != nil {
		t.Error(err)
	}
	k.ended <- nil
}

// TestFollowGone: clients that are gone before their feed has begun do not end the server.
func TestFollowGone(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server, err := api.New(s, api.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 50 {
		if err := server.Feed(gone, c.ID()); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := server.Feed(t.Context(), c.ID()); err != nil {
		t.Error(err)
	}
}
