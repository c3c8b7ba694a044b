package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

// batch is the number of messages of a commit.
const batch = 1000

// makeStore makes a store with contexts of n messages in all.
func makeStore(ctx context.Context, o options, name string, contexts, n int) (s *ctxdir.Store, err error) {
	if s, err = ctxdir.Init(filepath.Join(o.dir, name)); err != nil {
		return nil, err
	}
	for i := range contexts {
		c, err := s.Create(ctx, ctxdir.Metadata{Title: fmt.Sprint("Conversation ", i)})
		if err != nil {
			return nil, err
		}
		err = errors.Join(appendTo(ctx, c, o, uint64(i), 0, n/contexts), c.Close())
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// appendTo appends messages [from, to) of a conversation.
func appendTo(ctx context.Context, c *ctxdir.Context, o options, seed uint64, from, to int) error {
	messages := o.corpus.Stream(seed)
	for at := from; at < to; at += batch {
		var drafts []ctxdir.Draft
		for i := at; i < min(at+batch, to); i++ {
			drafts = append(drafts, ctxdir.Draft{Body: messages.Body(int64(i))})
		}
		if _, err := c.Active().AppendBatch(ctx, drafts); err != nil {
			return err
		}
	}
	return nil
}

// appendMore appends n messages to each of some contexts.
func appendMore(ctx context.Context, s *ctxdir.Store, o options, contexts, n int) (bytes int64, err error) {
	for id, err := range s.IDs() {
		if err != nil {
			return 0, err
		}
		if contexts--; contexts < 0 {
			break
		}
		err = s.Use(ctx, id, func(c *ctxdir.Context) error { return appendTo(ctx, c, o, uint64(contexts)+1<<32, 0, n) })
		if err != nil {
			return 0, err
		}
	}
	for i := range n {
		bytes += int64(len(o.corpus.Stream(1 << 32).Body(int64(i))))
	}
	return bytes, nil
}

// slow is a connection on which each round trip takes a while.
type slow struct {
	replica.Caller
	trip time.Duration
}

func (s slow) Call(ctx context.Context, request io.Reader) (io.ReadCloser, error) {
	time.Sleep(s.trip)
	return s.Caller.Call(ctx, request)
}

// syncOver brings a store and another one together over a pipe. With known, the other one's id is known before.
func syncOver(ctx context.Context, s, peer *ctxdir.Store, known bool, trip time.Duration) (*replica.Client, time.Duration, error) {
	requests, toPeer := io.Pipe()
	fromPeer, answers := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := replica.ServePipe(ctx, replica.NewFolder(peer), replica.Limits{}, requests, answers)
		done <- errors.Join(err, answers.CloseWithError(err))
	}()
	id := uuid.Nil
	if known {
		id = peer.Info().ID
	}
	c := replica.NewClient(slow{replica.NewPipe(fromPeer, toPeer), trip}, id)
	began := time.Now()
	total, err := replica.Sync(ctx, replica.NewFolder(s), c, replica.Options{Host: "here"})
	took := time.Since(began)
	if total.Failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d contexts failed", total.Failed))
	}
	return c, took, errors.Join(err, toPeer.Close(), <-done)
}
