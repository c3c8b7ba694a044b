package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/replica"
)

// pairOf makes a store, and another one that is the same.
func pairOf(ctx context.Context, o options, name string, contexts, n int) (s, peer *ctxdir.Store, err error) {
	if s, err = makeStore(ctx, o, name, contexts, n); err != nil {
		return nil, nil, err
	}
	if peer, err = makeStore(ctx, o, name+"-peer", 0, 0); err != nil {
		return nil, nil, err
	}
	_, _, err = syncOver(ctx, s, peer, false, 0)
	if err == nil {
		_, _, err = syncOver(ctx, s, peer, true, 0) // opens what is closed
	}
	return s, peer, err
}

// nothing brings two stores together that are the same.
func nothing(ctx context.Context, o options, s, peer *ctxdir.Store) (c *replica.Client, took time.Duration, err error) {
	var times []time.Duration
	for range max(o.rounds, 1) * 5 {
		c, took, err = syncOver(ctx, s, peer, true, 0)
		if err != nil {
			return nil, 0, err
		}
		times = append(times, took)
	}
	return c, measure.Quantile(times, 0.5), nil
}

func long(ctx context.Context, o options) ([]row, error) {
	s, peer, err := pairOf(ctx, o, "long", 1, o.long)
	if err != nil {
		return nil, err
	}
	c, took, err := nothing(ctx, o, s, peer)
	if err != nil {
		return nil, err
	}
	return []row{{
		fmt.Sprintf("nothing new: a context of %s messages", plain(o.long)), "1 trip, ≤ 200 bytes",
		fmt.Sprintf("%s, %d bytes, %v", trips(c), c.Bytes, rounded(took)), c.Trips == 1 && c.Bytes <= 200,
	}}, errors.Join(s.Close(), peer.Close())
}

func many(ctx context.Context, o options) ([]row, error) {
	s, peer, err := pairOf(ctx, o, "many", o.contexts, 20*o.contexts)
	if err != nil {
		return nil, err
	}
	c, took, err := nothing(ctx, o, s, peer)
	if err != nil {
		return nil, err
	}
	rows := []row{{
		fmt.Sprintf("nothing new: a store of %s contexts", plain(o.contexts)), "≤ 3 trips, ≤ 64 KiB, ≤ 100 ms",
		fmt.Sprintf("%s, %d bytes, %v", trips(c), c.Bytes, rounded(took)),
		c.Trips <= 3 && c.Bytes <= 64<<10 && took <= 100*time.Millisecond,
	}}
	body, err := appendMore(ctx, s, o, 1, 1)
	if err != nil {
		return nil, err
	}
	if c, took, err = syncOver(ctx, s, peer, true, 0); err != nil {
		return nil, err
	}
	return append(rows, row{
		"one new message in it", "≤ 2 KiB beyond its body",
		fmt.Sprintf("%d bytes beyond it, %s, %v", c.Bytes-body, trips(c), rounded(took)), c.Bytes-body <= 2<<10,
	}), errors.Join(s.Close(), peer.Close())
}

// link measures new messages over a link on which each trip takes 50 ms, in each direction.
func link(ctx context.Context, o options) ([]row, error) {
	s, peer, err := pairOf(ctx, o, "link", 20, 20*50)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, x := range []struct {
		what string
		at   *ctxdir.Store
	}{{"pushed", s}, {"pulled", peer}} {
		if _, err := appendMore(ctx, x.at, o, 20, 50); err != nil {
			return nil, err
		}
		c, took, err := syncOver(ctx, s, peer, true, 50*time.Millisecond)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			"1,000 new messages in 20 contexts " + x.what + ", over a link of 50 ms", "≤ 6 trips",
			fmt.Sprintf("%s, %v", trips(c), rounded(took)), c.Trips <= 6,
		})
	}
	return rows, errors.Join(s.Close(), peer.Close())
}
