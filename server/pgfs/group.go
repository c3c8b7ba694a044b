package pgfs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Group lets the synced writes of several users share transactions: those that wait for a free connection go together. Each
// statement still concerns one user. One that finds another owner changes nothing, and does not disturb the others; one that
// the server refuses fails them all.
//
// Such statements lock owners FOR KEY SHARE only, so that no two transactions wait for each other.
type Group struct {
	pool        *pgxpool.Pool
	connections int
	timeout     time.Duration

	mu      sync.Mutex
	waiting []*request
	running int
}

// request is a statement that waits for its result.
type request struct {
	statement string
	args      []any
	ops       int64
	err       error
	done      chan struct{}
}

// maxGroup bounds the statements of one transaction.
const maxGroup = 64

// NewGroup returns a group that uses so many connections of a pool. Two are enough for one disk: while one transaction
// waits for it, the next one is being prepared.
func NewGroup(pool *pgxpool.Pool, connections int) *Group {
	return &Group{pool: pool, connections: connections, timeout: 30 * time.Second}
}

// do runs a statement, and returns its result once the transaction is on disk.
func (g *Group) do(statement string, args []any) (ops int64, err error) {
	r := &request{statement: statement, args: args, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, r)
	if g.running < g.connections {
		g.running++
		go g.run()
	}
	g.mu.Unlock()
	<-r.done
	return r.ops, r.err
}

func (g *Group) run() {
	for {
		g.mu.Lock()
		n := min(len(g.waiting), maxGroup)
		list := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		if n == 0 {
			g.running, g.waiting = g.running-1, nil
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		err := g.send(list)
		for _, r := range list {
			if err != nil {
				r.err = err
			}
			close(r.done)
		}
	}
}

// send runs statements as one transaction: it is committed at the end of the pipeline, and only Close tells of it.
func (g *Group) send(list []*request) error {
	ctx, done := context.WithTimeout(context.Background(), g.timeout)
	defer done()
	var b pgx.Batch
	for _, r := range list {
		b.Queue(r.statement, r.args...)
	}
	results := g.pool.SendBatch(ctx, &b)
	for _, r := range list {
		if r.err = results.QueryRow().Scan(&r.ops); r.err != nil && !errors.Is(r.err, pgx.ErrNoRows) {
			_ = results.Close()
			return r.err
		}
	}
	return results.Close()
}
