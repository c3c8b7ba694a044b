package pgfs

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// Swept is what a [Sweep] has done.
type Swept struct {
	Objects int // that the bucket had
	Orphans int // of them, those that no row named
	Removed int // of them, those that were removed
}

// inFlight is how old an object is when no write can still name it: that of its upload has ended, and no other write has
// the name.
const inFlight = 24 * time.Hour

// pageOfObjects is how many objects the database is asked for at once.
const pageOfObjects = 1000

const (
	selectNamed  = `SELECT object FROM extents WHERE object = ANY($1::uuid[])` // for administrators: of all users
	insertOrphan = `INSERT INTO orphans SELECT $1, x, now() FROM unnest($2::uuid[]) AS x ON CONFLICT DO NOTHING`
	deleteOrphan = `DELETE FROM orphans WHERE user_id = $1 AND object = ANY($2::uuid[])`
	selectDue    = `SELECT object FROM orphans WHERE user_id = $1 AND object > $2 AND since <= now() - $3::interval ORDER BY object LIMIT $4`
	claimSweep   = `UPDATE buckets SET swept = now() WHERE user_id = $1 AND swept <= now() - interval '1 day'`
)

// ClaimSweep reports whether a sweep is due, and notes that the caller runs it: one of many processes, once a day.
func ClaimSweep(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	tag, err := pool.Exec(ctx, claimSweep, uuid.Nil)
	return tag.RowsAffected() == 1, err
}

// Sweep removes objects that no row has named for the time grace. So a database that is set back by less than that finds the
// objects that its rows named. It may run beside writers and other sweeps.
//
// Crash order: an object is removed only if the database noted a whole grace ago that no row names it, and none does now.
// No row can name it later: names are used once. After an interruption, another call does the rest.
func Sweep(ctx context.Context, pool *pgxpool.Pool, o *bucket.Objects, grace time.Duration) (s Swept, err error) {
	if err := o.Check(ctx); err != nil {
		return s, err
	}
	if err := s.find(ctx, pool, o); err != nil {
		return s, err
	}
	return s, s.remove(ctx, pool, o, grace)
}

// find notes objects that no row names.
func (s *Swept) find(ctx context.Context, pool *pgxpool.Pool, o *bucket.Objects) error {
	young := time.Now().Add(-inFlight)
	var page []uuid.UUID
	look := func() error {
		named, orphans, err := split(ctx, pool, page)
		if err != nil {
			return err
		}
		s.Orphans += len(orphans)
		page = page[:0]
		if _, err := pool.Exec(ctx, deleteOrphan, uuid.Nil, named); err != nil {
			return err
		}
		_, err = pool.Exec(ctx, insertOrphan, uuid.Nil, orphans)
		return err
	}
	for x, err := range o.List(ctx) {
		if err != nil {
			return err
		}
		s.Objects++
		if x.Modified.After(young) {
			continue
		}
		if page = append(page, x.Object); len(page) == pageOfObjects {
			if err := look(); err != nil {
				return err
			}
		}
	}
	return look()
}

// remove removes what was noted long ago.
func (s *Swept) remove(ctx context.Context, pool *pgxpool.Pool, o *bucket.Objects, grace time.Duration) error {
	for last := uuid.Nil; ; {
		rows, err := pool.Query(ctx, selectDue, uuid.Nil, last, grace, pageOfObjects)
		if err != nil {
			return err
		}
		page, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil || len(page) == 0 {
			return err
		}
		_, orphans, err := split(ctx, pool, page)
		if err != nil {
			return err
		}
		g, removing := errgroup.WithContext(ctx)
		g.SetLimit(maxRequests)
		for _, x := range orphans {
			g.Go(func() error { return o.Remove(removing, x) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		s.Removed += len(orphans)
		if _, err := pool.Exec(ctx, deleteOrphan, uuid.Nil, page); err != nil {
			return err
		}
		last = page[len(page)-1]
	}
}

// split tells objects that rows name from those that none does.
func split(ctx context.Context, pool *pgxpool.Pool, all []uuid.UUID) (named, orphans []uuid.UUID, err error) {
	rows, err := pool.Query(ctx, selectNamed, all)
	if err != nil {
		return nil, nil, err
	}
	if named, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		return nil, nil, err
	}
	is := make(map[uuid.UUID]bool, len(named))
	for _, x := range named {
		is[x] = true
	}
	for _, x := range all {
		if !is[x] {
			orphans = append(orphans, x)
		}
	}
	return named, orphans, nil
}
