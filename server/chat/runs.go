package chat

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/exchange"
	"github.com/google/uuid"
)

// Bounds of what is in memory.
const (
	keepAnswers  = 10 * time.Minute // after their end
	maxUserRuns  = 64               // of one user, answers that are kept included
	maxRunning   = 8                // of one user, at the same time
	maxAllRun    = 512              // of all users
	maxKept      = 64 << 20         // bytes of the answers that are kept
	maxPiece     = 64 << 10         // bytes of a piece of an answer
	keepWindows  = 10 * time.Minute // after their last use
	maxWindows   = 1000             // of all users
	maxUserWins  = 32               // of one user
	maxWindowLen = 256 << 10        // bytes of one
)

// key is a request.
type key struct {
	user             uuid.UUID
	session, request string
}

// run is a request, and its answer as far as it has arrived. Any number of connections follow it.
type run struct {
	of      key
	same    [sha256.Size]byte // of what was asked
	expires *time.Timer

	mu     sync.Mutex
	text   strings.Builder
	usage  exchange.Usage
	ended  bool
	err    *exchange.Error // with ended
	gone   bool            // it never began: another request may
	change chan struct{}   // closed with the next change
}

func (r *run) changed(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.change)
	r.change = make(chan struct{})
}

// add adds a piece to the answer.
func (r *run) add(text string) { r.changed(func() { r.text.WriteString(text) }) }

// errAbandoned says that nothing was asked, because the connection that wanted to ask was lost.
var errAbandoned = errors.New("the request was not begun")

// follow hands over the answer from its beginning, until it has ended. The error is that of send, of ctx, or errAbandoned.
func (r *run) follow(ctx context.Context, send func(exchange.Payload) error) error {
	sent := 0
	for {
		r.mu.Lock()
		text, ended, gone, err, u, change := r.text.String()[sent:], r.ended, r.gone, r.err, r.usage, r.change
		r.mu.Unlock()
		sent += len(text)
		if err == nil {
			if err := sendPieces(text, send); err != nil {
				return err
			}
		}
		switch {
		case gone:
			return errAbandoned
		case ended && err != nil:
			return err
		case ended:
			return send(exchange.ChatResponse{Done: true, Usage: &u})
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendPieces sends a text in pieces that fit into a message.
func sendPieces(text string, send func(exchange.Payload) error) error {
	for text != "" {
		n := min(len(text), maxPiece)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		if err := send(exchange.ChatResponse{Text: text[:n]}); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// runs are the requests of all users.
type runs struct {
	mu    sync.Mutex
	all   map[key]*run
	users map[uuid.UUID]int // how many of them
	busy  map[uuid.UUID]int // how many of them run
	runs  int               // how many run
	kept  int               // bytes of the answers that have ended
}

func newRuns() runs {
	return runs{all: map[key]*run{}, users: map[uuid.UUID]int{}, busy: map[uuid.UUID]int{}}
}

// claim returns the run of a request, and whether it is a new one: the caller then begins it, and ends or abandons it.
func (x *runs) claim(user uuid.UUID, q *exchange.ChatRequest) (r *run, isNew bool, err *exchange.Error) {
	of := key{user, q.SessionID, q.RequestID}
	same := sha256.Sum256([]byte(q.StorageMode + "\x00" + q.Message))
	x.mu.Lock()
	defer x.mu.Unlock()
	if r = x.all[of]; r != nil {
		if r.same != same {
			return nil, false, &exchange.Error{Code: exchange.CodeConflict, Message: "the request id belongs to another request"}
		}
		return r, false, nil
	}
	if x.busy[user] >= maxRunning || x.runs >= maxAllRun || x.users[user] >= maxUserRuns && !x.dropOne(user) {
		return nil, false, &exchange.Error{Code: exchange.CodeBusy, Message: "too many requests at once; repeat the request later"}
	}
	r = &run{of: of, same: same, change: make(chan struct{})}
	x.all[of] = r
	x.users[user]++
	x.busy[user]++
	x.runs++
	return r, true, nil
}

// dropOne forgets an answer of a user that has ended, whichever. The caller holds mu.
func (x *runs) dropOne(user uuid.UUID) bool {
	for of, r := range x.all {
		if of.user == user && r.expires != nil {
			r.expires.Stop()
			x.forget(r)
			return true
		}
	}
	return false
}

// forget removes a run. The caller holds mu.
func (x *runs) forget(r *run) {
	if x.all[r.of] != r {
		return
	}
	delete(x.all, r.of)
	if r.expires != nil {
		x.kept -= r.text.Len()
	}
	if x.users[r.of.user]--; x.users[r.of.user] == 0 {
		delete(x.users, r.of.user)
	}
}

// idle notes that a run ended. The caller holds mu.
func (x *runs) idle(user uuid.UUID) {
	x.runs--
	if x.busy[user]--; x.busy[user] == 0 {
		delete(x.busy, user)
	}
}

// end ends a run. Its answer is kept for a while if it is to be; an error is not, so that the request can be repeated.
func (x *runs) end(r *run, u exchange.Usage, err *exchange.Error, keep bool) {
	x.mu.Lock()
	x.idle(r.of.user)
	if size := r.text.Len(); err != nil || !keep || x.kept+size > maxKept {
		x.forget(r)
	} else {
		x.kept += size
		r.expires = time.AfterFunc(keepAnswers, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.forget(r)
		})
	}
	x.mu.Unlock()
	r.changed(func() { r.ended, r.usage, r.err = true, u, err })
}

// abandon removes a run that did not begin.
func (x *runs) abandon(r *run) {
	x.mu.Lock()
	x.idle(r.of.user)
	x.forget(r)
	x.mu.Unlock()
	r.changed(func() { r.gone = true })
}

// session is a conversation in local mode.
type session struct {
	user uuid.UUID
	id   string
}

// window is what the agent sent of a conversation.
type window struct {
	messages []exchange.ContextMessage
	expires  *time.Timer
}

// windows are those of all users.
type windows struct {
	mu  sync.Mutex
	all map[session]*window
}

// get returns the messages of a conversation. The caller must not change them.
func (x *windows) get(of session) []exchange.ContextMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w := x.all[of]; w != nil {
		return w.messages
	}
	return nil
}

// count returns the number of windows of a user. The caller holds mu.
func (x *windows) count(user uuid.UUID) (n int) {
	for of := range x.all {
		if of.user == user {
			n++
		}
	}
	return n
}

// put replaces the messages of a conversation. Too many are not kept: then all of them travel again.
func (x *windows) put(of session, messages []exchange.ContextMessage) {
	size := 0
	for _, m := range messages {
		size += len(m.Content)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if w := x.all[of]; w != nil {
		w.expires.Stop()
		delete(x.all, of)
	}
	if size > maxWindowLen || len(x.all) >= maxWindows || x.count(of.user) >= maxUserWins {
		return
	}
	w := &window{messages: messages}
	w.expires = time.AfterFunc(keepWindows, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.all[of] == w {
			delete(x.all, of)
		}
	})
	x.all[of] = w
}
