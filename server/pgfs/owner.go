package pgfs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// owner runs the statements of one user for the process that owns it.
type owner struct {
	pool    *pgxpool.Pool
	group   *Group // nil: each write is a transaction of its own
	user    uuid.UUID
	fence   int64
	timeout time.Duration
	trips   atomic.Int64 // statements so far

	mu      sync.Mutex
	acked   int64 // asynchronous changes that the database has acknowledged
	durable int64 // of these, those known to be on disk
	failure error // why nothing works any more
}

func (o *owner) alive() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failure
}

// fail makes everything fail from now on.
func (o *owner) fail(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure == nil {
		o.failure = err
	}
	return o.failure
}

func (o *owner) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), o.timeout)
}

// write runs one statement that begins with synced or unsynced, or barrier.
//
// Crash order: before the commit nothing has changed. A failure whose outcome is unknown is a failed fsync: no later call
// could tell what is there, so none succeeds. After an asynchronous commit, a crash of the database may take it back. The
// next statement then finds fewer changes than were acknowledged, and fails: see [ErrLost].
func (o *owner) write(sync bool, statement string, args ...any) error {
	if err := o.alive(); err != nil {
		return err
	}
	o.mu.Lock()
	acked := o.acked
	o.mu.Unlock()
	ops, err := o.run(sync, statement, append([]any{o.user, o.fence, acked}, args...))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return o.fail(o.why(acked))
	case err != nil && isAborted(err):
		return fault(err)
	case err != nil:
		return o.fail(fault(fmt.Errorf("%w: %w", ErrUnknown, err)))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked = max(o.acked, ops)
	if sync {
		o.durable = max(o.durable, acked)
	}
	return nil
}

func (o *owner) run(sync bool, statement string, args []any) (ops int64, err error) {
	o.trips.Add(1)
	if sync && statement != barrier && o.group != nil {
		return o.group.do(statement, args)
	}
	ctx, done := o.context()
	defer done()
	err = o.pool.QueryRow(ctx, statement, args...).Scan(&ops)
	return ops, err
}

// why tells why a write found no owner.
func (o *owner) why(acked int64) error {
	ctx, done := o.context()
	defer done()
	var fence, ops int64
	err := o.pool.QueryRow(ctx, selectOwner, o.user).Scan(&fence, &ops)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && fence == o.fence && ops < acked:
		return fault(ErrLost)
	case err == nil:
		return fault(ErrTaken)
	}
	return fault(fmt.Errorf("%w: %w", ErrUnknown, err))
}

// look asks whether this process still owns the user.
func (o *owner) look(ctx context.Context) error {
	if err := o.alive(); err != nil {
		return err
	}
	var fence, ops int64
	o.trips.Add(1)
	err := o.pool.QueryRow(ctx, selectOwner, o.user).Scan(&fence, &ops)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return o.fail(fault(ErrLost))
	case err != nil:
		return fault(err)
	case fence != o.fence:
		return o.fail(fault(ErrTaken))
	}
	return nil
}

// sync makes every acknowledged change durable. A transaction that writes nothing would not wait for the disk.
func (o *owner) sync() error {
	o.mu.Lock()
	pending := o.acked > o.durable
	o.mu.Unlock()
	if !pending {
		return o.alive()
	}
	return o.write(true, barrier)
}

// read runs a query, whose first parameter is the user, and calls scan for each row.
func (o *owner) read(scan func(pgx.Rows) error, query string, args ...any) error {
	if err := o.alive(); err != nil {
		return err
	}
	ctx, done := o.context()
	defer done()
	o.trips.Add(1)
	rows, err := o.pool.Query(ctx, query, append([]any{o.user}, args...)...)
	if err != nil {
		return fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fault(err)
	}
	return nil
}
