package exchange

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Client asks a server. Several goroutines may use it: answers arrive in any order. It connects with the first question, and
// again when the connection was lost.
type Client struct {
	o ClientOptions

	mu     sync.Mutex
	link   *link
	closed bool
}

// NewClient returns a client of a server. The caller closes it.
func NewClient(o ClientOptions) *Client {
	if o.Patience <= 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Attempts <= 0 {
		o.Attempts = 4
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	return &Client{o: o}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the connection. Questions that wait for an answer fail.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.link != nil {
		c.link.close(ctxdir.ErrClosed)
	}
	return nil
}

// connected returns the connection, and makes one if there is none.
func (c *Client) connected(ctx context.Context) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ctxdir.ErrClosed
	}
	if c.link != nil && c.link.ctx.Err() == nil {
		return c.link, nil
	}
	l, err := dial(ctx, &c.o)
	if err == nil {
		c.link = l
	}
	return l, err
}

// The pauses between two attempts.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 10 * time.Second
)

// again repeats f while the connection is lost.
func (c *Client) again(ctx context.Context, f func(l *link) error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		l, err := c.connected(ctx)
		if err == nil {
			err = f(l)
		}
		if err == nil || !errors.Is(err, ErrDisconnected) || attempt == c.o.Attempts {
			return err
		}
		if err := c.o.Wait(ctx, pause+mathrand.N(pause/2)); err != nil {
			return err
		}
		pause = min(2*pause, mostPause)
	}
}

// Answer is a complete answer.
type Answer struct {
	Text  string
	Usage Usage
}

// ErrChanged is the error of an answer that began otherwise before the connection was lost: the server has forgotten it
// meanwhile, and asked the model again.
var ErrChanged = errors.New("the answer to the repeated request is another one")

// Ask sends a request and returns the answer. onText, which may be nil, gets each piece of it as it arrives. If the connection is
// lost, Ask repeats the request; the server asks the model once. Ask fails with an [*Error] of the server, with
// [ErrDisconnected], [ErrChanged], or [ErrMalformed] for a request that is not valid.
func (c *Client) Ask(ctx context.Context, r ChatRequest, onText func(text string)) (a Answer, err error) {
	var before string // what onText has
	err = c.again(ctx, func(l *link) error {
		var text strings.Builder
		return l.ask(ctx, rand.Text(), r, func(p Payload) (bool, error) {
			piece, is := p.(ChatResponse)
			if !is {
				return false, fmt.Errorf("%w: %s is no answer to a request", ErrMalformed, p.Type())
			}
			if text.Len()+len(piece.Text) > MaxAnswer {
				return false, malformed("the answer exceeds the limit of %d bytes", MaxAnswer)
			}
			text.WriteString(piece.Text)
			now := text.String()
			switch {
			case strings.HasPrefix(now, before):
				if onText != nil && len(now) > len(before) {
					onText(now[len(before):])
				}
				before = now
			case !strings.HasPrefix(before, now) || piece.Done:
				return false, ErrChanged
			}
			if piece.Done {
				a.Text = now
				if piece.Usage != nil {
					a.Usage = *piece.Usage
				}
			}
			return piece.Done, nil
		})
	})
	return a, err
}

// uploadSize is how many bytes of bodies one message of an upload has.
const uploadSize = MaxFrame / 2

// ErrUnconfirmed is the error of an upload of which the server has something else than this machine.
var ErrUnconfirmed = errors.New("the server does not have the same messages")

// Upload brings the messages of the active branch of a context to the server, and returns when the server has read all of them
// back and they are the same. It brings only what the server lacks. For other branches, for messages above half of
// [MaxFrame], and for those that cannot be read, there is package replica. It fails with [ErrUnconfirmed], and with
// [ctxdir.ErrTooLarge].
func (c *Client) Upload(ctx context.Context, of *ctxdir.Context) (done UploadComplete, err error) {
	b := of.Active()
	u := Upload{SessionID: of.ID().String(), Title: of.Metadata().Title}
	if done, err = c.upload(ctx, Upload{SessionID: u.SessionID}); err != nil {
		return done, err
	}
	if len(done.Heads) > 0 {
		u.From = done.Heads[0].Len
	}
	size, all, part := 0, NewDigest(), NewDigest()
	flush := func() error {
		if done, err = c.upload(ctx, u); err == nil && done.Digest != part.String() {
			err = ErrUnconfirmed
		}
		u.From += int64(len(u.Messages))
		u.Messages, size, part = nil, 0, NewDigest()
		return err
	}
	had, isSame := u.From, done.Digest == all.String()
	for m, err := range b.Messages(ctx, 0, ctxdir.End) {
		if err == nil {
			err = m.Unavailable
		}
		if err != nil {
			return done, err
		}
		body, err := m.Body(ctx)
		if err != nil {
			return done, err
		}
		all.Add(m.ID, body)
		if m.Position < had {
			isSame = m.Position == had-1 && done.Digest == all.String()
			continue
		}
		if !isSame {
			break
		}
		if len(body) > uploadSize {
			return done, fmt.Errorf("message %d: %w", m.Position, ctxdir.ErrTooLarge)
		}
		if size += len(body) + 256; size > uploadSize || len(u.Messages) == MaxMessages/2 {
			if err := flush(); err != nil {
				return done, err
			}
			size = len(body) + 256
		}
		u.Messages = append(u.Messages, UploadMessage{m.ID, m.Role, m.Type, m.CreatedAt, body})
		part.Add(m.ID, body)
	}
	if !isSame {
		return done, ErrUnconfirmed
	}
	if len(u.Messages) > 0 {
		if err := flush(); err != nil {
			return done, err
		}
	}
	if done, err = c.upload(ctx, Upload{SessionID: u.SessionID}); err == nil && done.Digest != all.String() {
		err = ErrUnconfirmed
	}
	return done, err
}

// upload sends a part.
func (c *Client) upload(ctx context.Context, u Upload) (done UploadComplete, err error) {
	err = c.again(ctx, func(l *link) error {
		return l.ask(ctx, rand.Text(), u, func(p Payload) (is bool, err error) {
			if done, is = p.(UploadComplete); !is {
				return false, fmt.Errorf("%w: %s is no answer to an upload", ErrMalformed, p.Type())
			}
			return true, nil
		})
	})
	return done, err
}

// NewRequestID returns a new id for a request.
func NewRequestID() string { return uuid.NewString() }
