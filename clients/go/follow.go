package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"
)

// Event is a change in a context.
type Event struct {
	Record  string          `json:"record"` // its subject: message, branch, metadata, context or resync
	Event   string          `json:"event"`  // what happened: "appended", "renamed", …
	Context string          `json:"context"`
	Seq     uint64          `json:"seq"`  // of the commit: follow again after it; 0 for an edit by hand
	More    bool            `json:"more"` // another event of the same commit follows
	Data    json.RawMessage `json:"-"`    // all of it, as docs/API.md describes
}

// maxEvent bounds an event, in bytes. The server leaves out the content of larger messages.
const maxEvent = 4 << 20

// closeRemoved is the status with which the server ends the events of a removed context.
const closeRemoved = websocket.StatusCode(4002)

// Follow yields the events of a context after the commit with a number, and then new ones as they happen: the events of
// each commit once, in order. If the connection ends, it connects again and continues where it was. It ends with an error
// if that fails twice without an event between, or if the context was removed: then with a [Problem] of the code
// not_found. The end of ctx ends it with the error of ctx.
func (c *ClientWithResponses) Follow(ctx context.Context, context ContextRef, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		x := &following{c: c, path: "/v1/contexts/" + url.PathEscape(context) + "/events", after: after, yield: yield}
		for {
			before := x.after
			err := x.connect(ctx)
			switch {
			case x.stopped:
				return
			case ctx.Err() != nil:
				yield(Event{}, ctx.Err())
				return
			case x.final || x.after == before && x.failed:
				yield(Event{}, err)
				return
			}
			x.failed = x.after == before
		}
	}
}

// following is a sequence of connections.
type following struct {
	c       *ClientWithResponses
	path    string
	after   uint64 // the last commit whose events were all yielded
	pending []Event
	yield   func(Event, error) bool
	stopped bool // the consumer wants no more
	failed  bool // the connection before brought nothing
	final   bool // another connection would bring nothing either
}

// connect yields events until the connection ends.
func (x *following) connect(ctx context.Context) error {
	conn, err := x.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.CloseNow() //nolint:errcheck // it only reads
	conn.SetReadLimit(maxEvent)
	x.pending = nil // of a commit whose other events did not come
	for {
		_, line, err := conn.Read(ctx)
		if err != nil {
			if websocket.CloseStatus(err) == closeRemoved {
				x.final = true
				return Problem{Code: "not_found", Status: http.StatusNotFound, Title: "Removed", Detail: "the context was removed"}
			}
			return err
		}
		e := Event{Data: line}
		if err := json.Unmarshal(line, &e); err != nil {
			x.final = true
			return fmt.Errorf("an event is not valid JSON: %w", err)
		}
		if e.Record == "ready" || e.Record == "heartbeat" {
			continue
		}
		if x.pending = append(x.pending, e); e.More {
			continue
		}
		for i := range x.pending {
			if !x.yield(x.pending[i], nil) {
				x.stopped = true
				return nil
			}
		}
		x.pending, x.after, x.failed = x.pending[:0], max(x.after, e.Seq), false
	}
}

func (x *following) dial(ctx context.Context) (*websocket.Conn, error) {
	plain, ok := x.c.ClientInterface.(*Client)
	if !ok {
		x.final = true
		return nil, errors.New("cannot follow: the client does not wrap a generated Client")
	}
	address, err := url.Parse(plain.Server)
	if err != nil {
		x.final = true
		return nil, err
	}
	address = address.JoinPath(x.path)
	address.RawQuery = "after=" + strconv.FormatUint(x.after, 10)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err == nil {
		err = plain.applyEditors(ctx, r, nil)
	}
	if err != nil {
		return nil, err
	}
	o := &websocket.DialOptions{HTTPHeader: r.Header}
	if h, ok := plain.Client.(*http.Client); ok {
		o.HTTPClient = h
	}
	conn, resp, err := websocket.Dial(ctx, address.String(), o) //nolint:bodyclose // what Dial returns needs no close
	if err != nil && resp != nil && resp.StatusCode >= 400 {
		x.final = resp.StatusCode < 500
		return nil, problemOf(resp)
	}
	return conn, err
}
