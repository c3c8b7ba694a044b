package pgfs

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Errors of [Attach].
var (
	// ErrNoBucket means that content of the database is in an object store.
	ErrNoBucket = errors.New("content of this database is in an object store")
	// ErrBucket means that the bucket is another one.
	ErrBucket = errors.New("the objects of this database are not in this bucket")
)

const (
	selectBucket = `SELECT bucket FROM buckets WHERE user_id = $1`
	insertBucket = `INSERT INTO buckets VALUES ($1, $2, now()) ON CONFLICT DO NOTHING`
	hasObjects   = `SELECT EXISTS (SELECT FROM extents WHERE object IS NOT NULL)` // for administrators: of all users
)

// Attach returns the objects that a database has in a bucket. The first call makes a marker in it. Later ones look for that:
// the error is [ErrBucket] if it is not there, and is that of the store if it does not answer. Without a bucket, it returns
// nil, or [ErrNoBucket] if rows name objects.
//
// Crash order: the bucket has the marker before the database names it.
func Attach(ctx context.Context, pool *pgxpool.Pool, b bucket.Bucket) (*bucket.Objects, error) {
	id, err := bucketOf(ctx, pool)
	switch {
	case err != nil:
		return nil, err
	case b == nil && id == uuid.Nil:
		return nil, nil
	case b == nil:
		return nil, needsNone(ctx, pool)
	}
	if id == uuid.Nil {
		id = uuid.New()
		if err := bucket.NewObjects(b, id).Mark(ctx); err != nil {
			return nil, err
		}
		if _, err := pool.Exec(ctx, insertBucket, uuid.Nil, id); err != nil {
			return nil, err
		}
		if id, err = bucketOf(ctx, pool); err != nil { // another process may have been the first
			return nil, err
		}
	}
	o := bucket.NewObjects(b, id)
	if err := o.Check(ctx); errors.Is(err, bucket.ErrOther) {
		return nil, ErrBucket
	} else if err != nil {
		return nil, err
	}
	return o, nil
}

// bucketOf returns what names the objects of a database in its bucket.
func bucketOf(ctx context.Context, pool *pgxpool.Pool) (id uuid.UUID, err error) {
	err = pool.QueryRow(ctx, selectBucket, uuid.Nil).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return id, err
}

func needsNone(ctx context.Context, pool *pgxpool.Pool) error {
	var has bool
	err := pool.QueryRow(ctx, hasObjects).Scan(&has)
	if err == nil && has {
		err = ErrNoBucket
	}
	return err
}
