package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/google/uuid"
)

// pause is the time between two appends that are followed.
const pause = 5 * time.Millisecond

// appended appends to a store as another process, and returns false in other processes.
func appended() bool {
	if len(os.Args) != 5 || os.Args[1] != "append" {
		return false
	}
	n, err := strconv.Atoi(os.Args[4])
	if err == nil {
		err = appendStamps(os.Args[2], os.Args[3], n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// appendStamps appends messages that say when their appends began.
func appendStamps(store, id string, n int) error {
	ctx := context.Background()
	s, err := ctxdir.Open(store)
	if err != nil {
		return err
	}
	err = s.Use(ctx, uuid.MustParse(id), func(c *ctxdir.Context) error {
		for range n {
			time.Sleep(pause)
			body := fmt.Appendf(nil, `{"role":"user","at":%d}`, time.Now().UnixNano())
			if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: body}); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, s.Close())
}

func (s *server) dial(ctx context.Context, id string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.base, "http")+"/v1/contexts/"+id+"/events", &websocket.DialOptions{
		Subprotocols: []string{"ctxdir.v1", "ctxdir.token." + token},
	})
	if err == nil {
		_, _, err = conn.Read(ctx) // ready
	}
	return conn, err
}

// stamp returns when the append of the next message began.
func stamp(ctx context.Context, conn *websocket.Conn) (time.Time, error) {
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return time.Time{}, err
		}
		var line struct {
			Record  string
			Message struct{ At int64 }
		}
		if err := json.Unmarshal(b, &line); err != nil {
			return time.Time{}, err
		}
		if line.Record == "message" {
			return time.Unix(0, line.Message.At), nil
		}
	}
}

// follow measures how long an append in another process takes to a follower.
func follow(ctx context.Context, o options) (rows []row, err error) {
	dir := filepath.Join(o.dir, "follow")
	s, c, err := fill(ctx, dir, 10)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		return nil, err
	}
	x, err := start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	conn, err := x.dial(ctx, c.ID().String())
	if err != nil {
		return nil, err
	}
	defer conn.CloseNow()
	writer, err := writerOf(dir, c.ID().String(), o.ops)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for range o.ops {
		at, err := stamp(ctx, conn)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
	}
	p95 := measure.Quantile(took, 0.95)
	return []row{{
		"append in another process to a follower", "≤ 20 ms (p95)",
		fmt.Sprintf("%s (p95), %s (p50)", milliseconds(p95), milliseconds(measure.Quantile(took, 0.5))), p95 <= 20*time.Millisecond,
	}}, writer.Wait()
}

func writerOf(dir, id string, n int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	writer := exec.Command(self, "append", dir, id, strconv.Itoa(n))
	writer.Stderr = os.Stderr
	return writer, writer.Start()
}

// followers lets many follow one context.
func followers(ctx context.Context, o options) (rows []row, err error) {
	dir := filepath.Join(o.dir, "followers")
	s, c, err := fill(ctx, dir, 10)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		return nil, err
	}
	x, err := start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	conns := make([]*websocket.Conn, o.followers)
	for i := range conns {
		if conns[i], err = x.dial(ctx, c.ID().String()); err != nil {
			return nil, err
		}
		defer conns[i].CloseNow()
	}
	const rounds = 10
	var last []time.Duration
	for range rounds {
		writer, err := writerOf(dir, c.ID().String(), 1)
		if err != nil {
			return nil, err
		}
		took, err := slowest(ctx, conns)
		if err := errors.Join(err, writer.Wait()); err != nil {
			return nil, err
		}
		last = append(last, took)
	}
	_, peak, err := x.memory()
	if err != nil {
		return nil, err
	}
	p50 := measure.Quantile(last, 0.5)
	return []row{
		{fmt.Sprintf("memory of the server with %d followers", o.followers), "≤ 256 MiB", mebibytes(peak), peak <= 256<<20},
		{
			"the last of them is told", "≤ 250 ms", fmt.Sprintf("%s (p50 of %d appends)", milliseconds(p50), rounds),
			p50 <= 250*time.Millisecond,
		},
	}, nil
}

// slowest returns how long an append takes to the last follower.
func slowest(ctx context.Context, conns []*websocket.Conn) (took time.Duration, err error) {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
	)
	for _, conn := range conns {
		group.Go(func() {
			at, readErr := stamp(ctx, conn)
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			took, err = max(took, now.Sub(at)), errors.Join(err, readErr)
		})
	}
	group.Wait()
	return took, err
}
