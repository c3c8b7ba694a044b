package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

const (
	// heartbeat is the time between two signs of life.
	heartbeat = 25 * time.Second
	// maxFollowers bounds the WebSockets of a server.
	maxFollowers = 10_000
)

// The status codes of a WebSocket that the server closes.
const (
	closeEnding  = websocket.StatusGoingAway  // the server ends: connect again
	closeSlow    = websocket.StatusCode(4001) // connect again, after the number in the reason
	closeRemoved = websocket.StatusCode(4002)
	closeAgain   = websocket.StatusServiceRestart // the feed failed: connect again
)

// ready is the first line of a WebSocket.
type ready struct {
	Record  string `json:"record"`
	Context string `json:"context,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
}

// beat is a sign of life. Its number is that of the newest commit that the follower has.
type beat struct {
	Record string `json:"record"`
	Seq    uint64 `json:"seq,omitempty"`
}

// followContext sends the events of a context: those after the commit with the number in the query, or else new ones.
func (x *Server) followContext(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	resume := p.has("after")
	after := uint64(p.number("after", 0))
	if err := p.done(); err != nil {
		return err
	}
	id, err := x.contextOf(r)
	if err != nil {
		return err
	}
	return x.follow(w, r, &follower{bounds: x.bounds.of(r), feeds: &x.feeds, view: x.store.of(r), id: id, sequence: after, resume: resume})
}

// followStore sends the events of all contexts from now on.
func (x *Server) followStore(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	return x.follow(w, r, &follower{bounds: x.bounds.of(r), feeds: &x.feeds, view: x.store.of(r)})
}

// follow upgrades the connection and serves it until one side leaves. Before the upgrade, an error is a problem.
func (x *Server) follow(w http.ResponseWriter, r *http.Request, f *follower) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		return problem(Code{codeInvalid.Name, http.StatusUpgradeRequired, codeInvalid.Title}, "this operation is a WebSocket")
	}
	if x.followers.Add(1) > maxFollowers {
		x.followers.Add(-1)
		return problem(codeUnavailable, "the server has reached its limit of %d followers", maxFollowers)
	}
	defer x.followers.Add(-1)
	feed, at, leave, err := x.feeds.follow(r.Context(), f.id)
	if err != nil {
		return err
	}
	defer leave()
	f.feed, f.at = feed, at
	if err := f.look(r.Context()); err != nil {
		return err
	}
	conn, err := websocket.Accept(plain(w), r, &websocket.AcceptOptions{
		Subprotocols: []string{"ctxdir.v1"}, CompressionMode: websocket.CompressionDisabled,
		InsecureSkipVerify: true, // the guard has verified the origin
	})
	if err != nil {
		panic(http.ErrAbortHandler) // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed already, unless the client is gone
	f.conn = conn
	ended, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(x.ended, end)()
	// The end of the context of CloseRead would cut the connection without a close frame.
	code, why := f.run(conn.CloseRead(context.WithoutCancel(r.Context())), ended.Done())
	_ = conn.Close(code, why+"; after="+strconv.FormatUint(f.sequence, 10))
	return nil
}

// plain is the writer of the connection itself: the upgrade takes it over.
func plain(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}

// follower is one WebSocket.
type follower struct {
	bounds   bounds
	feeds    *feeds
	view     view
	seen     map[uuid.UUID]bool // contexts of a limited view that the client knows of
	id       uuid.UUID          // of the context; uuid.Nil for the store
	conn     *websocket.Conn
	feed     *feed
	at       *event // the place in the feed
	resume   bool   // after sequence
	sequence uint64 // of the newest commit that was sent whole
}

// run sends events until the client leaves, or there are none any more.
func (f *follower) run(ctx context.Context, ended <-chan struct{}) (code websocket.StatusCode, why string) {
	if !f.resume {
		f.sequence = f.at.sequence
	}
	hello := ready{Record: "ready", Seq: f.sequence}
	if f.id != uuid.Nil {
		hello.Context = f.id.String()
	}
	if err := f.send(ctx, record.Encode(hello)); err != nil {
		return closeSlow, "too slow"
	}
	if f.sequence < f.at.sequence {
		if err := f.catchUp(ctx); err != nil {
			return closeAgain, "failed to read the events since then"
		}
	}
	sent := f.sequence // whole commits, of which the feed may have events
	timer := time.NewTicker(heartbeat)
	defer timer.Stop()
	for {
		var line []byte
		select {
		case <-f.at.more:
			switch {
			case f.at.next != nil:
			case f.feeds.ended.Err() != nil:
				return closeEnding, "the server is shutting down"
			case f.at.removed:
				return closeRemoved, "the context was removed"
			default:
				return closeAgain, "failed to read further events"
			}
			f.at = f.at.next
			if f.at.own > 0 && f.at.own <= sent {
				continue
			}
			if line = f.at.line; !f.sees(ctx) {
				if f.id != uuid.Nil {
					return closeRemoved, "the context was removed"
				}
				continue
			}
		case <-timer.C:
			line = record.Encode(beat{"heartbeat", f.sequence})
		case <-ended:
			return closeEnding, "the server is shutting down"
		case <-ctx.Done():
			return websocket.StatusNormalClosure, "bye"
		}
		if f.feed.newest()-f.at.total > f.bounds.behind || f.send(ctx, line) != nil {
			return closeSlow, "too slow"
		}
		f.sequence = max(f.sequence, f.at.sequence)
	}
}

// look notes which contexts of a limited view are there.
func (f *follower) look(ctx context.Context) error {
	if !f.view.limited {
		return nil
	}
	f.seen = map[uuid.UUID]bool{}
	for s, err := range f.view.list(ctx, ctxdir.ListOptions{Kind: "*"}) {
		if err != nil {
			return err
		}
		f.seen[s.ID] = true
	}
	return nil
}

// sees reports whether the client may see the event at which the follower is. Of a context that is gone, it may if it saw the
// context before.
func (f *follower) sees(ctx context.Context) bool {
	if !f.view.limited {
		return true
	}
	id := f.at.context
	was, is := f.seen[id], f.view.sees(ctx, id)
	if delete(f.seen, id); is {
		f.seen[id] = true
	}
	return is || was && f.at.removed
}

// catchUp sends the events of the past, which a watcher of its own reads.
func (f *follower) catchUp(ctx context.Context) error {
	return f.feeds.store.Use(ctx, f.id, func(c *ctxdir.Context) error {
		w, err := c.Watch(ctx, f.sequence)
		if err != nil {
			return err
		}
		defer w.Close() //nolint:errcheck // it only reads
		for e := range w.Pending(ctx) {
			if e.Kind == ctxdir.EventProblem {
				return e.Problem
			}
			if e.Seq == 0 { // no commit, such as the removal: the feed has it, too
				continue
			}
			if err := f.send(ctx, record.OfEvent(ctx, &e, maxInline)); err != nil {
				return err
			}
			if !e.More {
				f.sequence = max(f.sequence, e.Seq)
			}
		}
		return ctx.Err()
	})
}

// send sends a line. The client has to take it in time.
func (f *follower) send(ctx context.Context, line []byte) error {
	ctx, stop := context.WithTimeout(ctx, f.bounds.patience)
	defer stop()
	return f.conn.Write(ctx, websocket.MessageText, line)
}
