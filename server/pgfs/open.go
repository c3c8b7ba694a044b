package pgfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say how [Open] takes over a user.
type Options struct {
	Owner   string          // names this process in the table owners
	Keys    *Keys           // encrypts; nil stores everything as it is
	Group   *Group          // shares transactions with other users; nil: each write is a transaction of its own
	Timeout time.Duration   // of one statement; 0 means 30 s. A write that takes longer fails with [ErrUnknown]
	Objects *bucket.Objects // from [Attach]; takes large content. nil leaves all of it in the database
	Damaged func(error)     // hears of each damaged row, with an error that wraps [ErrDamaged]; nil for nobody
}

// Open takes the user over from whichever process has it, and opens its files. An unknown user has an empty folder. The
// tables have to be there: see [Migrate]. It fails with [ErrKey] if the master key is not that of the user.
//
// Crash order: once the fence is incremented, no earlier owner commits a write. Writes of it that have not failed by then
// are there. Only then Open reads.
func Open(ctx context.Context, pool *pgxpool.Pool, user uuid.UUID, o Options) (*FS, error) {
	v := &volume{
		owner:   &owner{pool: pool, group: o.Group, user: user, timeout: o.Timeout},
		sealer:  plain{},
		damaged: o.Damaged,
		objects: o.Objects,
		root:    &node{id: 1, folder: true, refs: 1},
		locks:   map[slot]*holders{},
	}
	if v.timeout == 0 {
		v.timeout = 30 * time.Second
	}
	if v.damaged == nil {
		v.damaged = func(error) {}
	}
	if err := o.Keys.Check(ctx, pool); err != nil {
		return nil, err
	}
	content, names, err := v.takeOver(ctx, o.Owner)
	if err == nil && o.Keys != nil {
		v.sealer, err = o.Keys.sealer(ctx, pool, user, content, names)
	}
	if err == nil {
		err = v.begin()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the files of user %s: %w", user, err)
	}
	return &FS{v: v, root: v.root, whole: true}, nil
}

// takeOver increments the fence, and returns the wrapped keys.
func (v *volume) takeOver(ctx context.Context, name string) (content, names []byte, err error) {
	for {
		v.trips.Add(1)
		err = v.pool.QueryRow(ctx, takeOver, v.user, name).Scan(&v.fence, &v.acked, &content, &names)
		if !errors.Is(err, pgx.ErrNoRows) {
			break
		}
		v.trips.Add(1)
		if _, err = v.pool.Exec(ctx, newUser, v.user, name, time.Now().UnixNano()); err != nil {
			break
		}
	}
	v.durable = v.acked
	return bytes.Clone(content), bytes.Clone(names), err
}

// begin reads the root and the newest node, and removes what the last owner removed while it was open.
func (v *volume) begin() error {
	var kept bool
	err := v.read(func(rows pgx.Rows) error { return rows.Scan(&v.last, &kept, &v.root.mtime) }, selectLast)
	if err != nil || !kept {
		return err
	}
	var nodes []int64
	err = v.read(func(rows pgx.Rows) error {
		var n int64
		defer func() { nodes = append(nodes, n) }()
		return rows.Scan(&n)
	}, selectKept)
	for _, n := range nodes {
		if err == nil {
			err = v.write(false, unsynced+dropNode+forgetNode+result, n)
		}
	}
	return err
}
