package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/ctxdir/ctxdir/server/vault"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Database keeps users and their stores in PostgreSQL: a [Directory], [Stores] and [Accounts]. Until [Database.Prepare] has
// returned, it is not ready.
type Database struct {
	pool     *pgxpool.Pool
	keys     *pgfs.Keys
	group    *pgfs.Group
	damaged  func(error)
	bucket   bucket.Bucket
	failed   func(error)
	objects  *bucket.Objects // once it is prepared
	users    *users.Users
	prepared atomic.Bool
}

// DatabaseOptions say how to use a database.
type DatabaseOptions struct {
	// Master encrypts the keys of users.
	Master pgfs.Master
	// Apart gives each write a transaction of its own. Otherwise writes of several users share transactions, which a database
	// that is distributed by user would have to coordinate.
	Apart bool
	// Bucket takes large content; nil leaves all of it in the database.
	Bucket bucket.Bucket
	// Failed hears of each request to the bucket that failed. It may be nil.
	Failed func(error)
	// Damaged hears of each damaged row. It may be nil.
	Damaged func(error)
}

// ErrNotReady means that the tables are being made.
var ErrNotReady = errors.New("the database is being prepared")

// NewDatabase returns the database at a URL. It does not connect yet. The caller closes it.
func NewDatabase(ctx context.Context, url string, o DatabaseOptions) (*Database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	d := &Database{
		pool: pool, users: users.InDatabase(pool), keys: pgfs.NewKeys(o.Master), damaged: o.Damaged, bucket: o.Bucket, failed: o.Failed,
	}
	if !o.Apart {
		d.group = pgfs.NewGroup(pool, 2)
	}
	return d, nil
}

// Close ends the use of the database.
func (d *Database) Close() error {
	d.pool.Close()
	return nil
}

// Migrate makes the tables, or brings them up to date.
func (d *Database) Migrate(ctx context.Context) error { return schema.Migrate(ctx, d.pool) }

// Prepare makes the tables, and looks whether the master key is that of the database: the error wraps [pgfs.ErrKey] if it is
// not, and nothing has been written with it. It wraps [pgfs.ErrBucket] if the bucket is another one, and [pgfs.ErrNoBucket] if
// there is none and it is needed.
func (d *Database) Prepare(ctx context.Context) error {
	if err := d.Migrate(ctx); err != nil {
		return err
	}
	if err := d.keys.Check(ctx, d.pool); err != nil {
		return err
	}
	var err error
	if d.objects, err = pgfs.Attach(ctx, d.pool, d.bucket); err != nil {
		return err
	}
	if d.objects != nil {
		d.objects.Failed = d.failed
	}
	d.prepared.Store(true)
	return nil
}

// Sweep removes objects of the bucket that no row has named for the time grace. It is for a database that is prepared, and has
// a bucket.
func (d *Database) Sweep(ctx context.Context, grace time.Duration) (pgfs.Swept, error) {
	return pgfs.Sweep(ctx, d.pool, d.objects, grace)
}

// SweepDaily sweeps once a day, until ctx ends: one of the servers of the database does it. Each hour it looks whether it is
// time. tell hears of each sweep, and of a look that failed.
func (d *Database) SweepDaily(ctx context.Context, grace time.Duration, tell func(pgfs.Swept, error)) {
	if d.objects == nil {
		return
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		claimed, err := pgfs.ClaimSweep(ctx, d.pool)
		var s pgfs.Swept
		if claimed && err == nil {
			s, err = d.Sweep(ctx, grace)
		}
		if ctx.Err() == nil && (claimed || err != nil) {
			tell(s, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// IsUnreachable reports whether an error says that nobody answers at the address of the database, of the bucket or of the master
// key, so that another try may help.
func IsUnreachable(err error) bool {
	var c *pgconn.ConnectError
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code == "57P03" // cannot_connect_now: it starts, or recovers
	}
	return errors.As(err, &c) || bucket.IsUnreachable(err) || vault.IsUnreachable(err)
}

// Users returns the users.
func (d *Database) Users() *users.Users { return d.users }

// Authorize implements [Directory].
func (d *Database) Authorize(ctx context.Context, token string) (users.Grant, error) {
	if !d.prepared.Load() {
		return users.Grant{}, ErrNotReady
	}
	return d.users.Authorize(ctx, token)
}

// Owner implements [Directory].
func (d *Database) Owner(ctx context.Context, g users.Grant, name string) (uuid.UUID, []string, error) {
	return d.users.Owner(ctx, g, name)
}

// Ready implements [Directory].
func (d *Database) Ready(ctx context.Context) error {
	if !d.prepared.Load() {
		return ErrNotReady
	}
	return d.users.Ready(ctx)
}

// Open implements [Stores].
func (d *Database) Open(ctx context.Context, user uuid.UUID) (Store, error) {
	host, _ := os.Hostname() // only for people who look at the table
	o := pgfs.Options{Owner: fmt.Sprintf("%s/%d", host, os.Getpid()), Keys: d.keys, Group: d.group, Objects: d.objects, Damaged: d.damaged}
	f, err := pgfs.Open(ctx, d.pool, user, o)
	if err != nil {
		return nil, err
	}
	s, err := ctxdir.Init("database", knobs.Options(engine.WithFS(f)))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return inDatabase{s, f, d.objects}, nil
}

// Rewrap wraps the keys of all users with the newest master key, and returns how many there are.
func (d *Database) Rewrap(ctx context.Context) (int, error) { return d.keys.Rewrap(ctx, d.pool) }

// Verify opens the keys of all users with a master key, and returns how many there are. The error wraps [pgfs.ErrKey].
func (d *Database) Verify(ctx context.Context, m pgfs.Master) (int, error) {
	return pgfs.NewKeys(m).Verify(ctx, d.pool)
}

// inDatabase is a store in the database.
type inDatabase struct {
	*ctxdir.Store
	files   *pgfs.FS
	objects *bucket.Objects
}

func (s inDatabase) Engine() *ctxdir.Store { return s.Store }
func (s inDatabase) Alive() error          { return s.files.Alive() }

// Failing implements [Store].
func (s inDatabase) Failing() error {
	if s.objects == nil {
		return nil
	}
	return s.objects.Failure()
}

// Look implements [Store].
func (s inDatabase) Look(ctx context.Context) error { return s.files.Look(ctx) }

// Files returns the files of the store, which are in no folder.
func (s inDatabase) Files() fs.FS { return vfs.IO(s.files) }

func (s inDatabase) Size() (int64, error) { return s.files.Size() }
func (s inDatabase) Close() error         { return errors.Join(s.Store.Close(), s.files.Close()) }
