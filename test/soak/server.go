package soak

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"golang.org/x/sync/errgroup"
)

// token is that of the server.
const token = "soak-0123456789abcdef0123456789abc"

// server serves a store, and is its client too. What fails in the server is in its log, and counts.
func server(ctx context.Context, dir string) error {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	x, err := api.New(s, api.Options{Token: token, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	l, err := api.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- x.Serve(serving, l, nil) }()
	c := client{at: l.Addr().String()}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		whole := context.WithoutCancel(ctx) // a request that is cut off may fail in the server
		return again(ctx, func() error { return c.look(whole) })
	})
	group.Go(func() error { return c.follow(ctx) })
	err = group.Wait()
	stop()
	if failed := <-ended; failed != nil {
		return fmt.Errorf("serving: %w", failed)
	}
	return err
}
