package pgfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/s3test"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
	"pgregory.net/rapid"
)

var (
	server  *pgtest.Server
	missing error // why there is no server
)

func TestMain(m *testing.M) {
	server, missing = pgtest.Start("", "max_connections = 200")
	code := m.Run()
	if server != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// database returns a migrated database of its own.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	if errors.Is(missing, pgtest.ErrNone) {
		t.Skip(missing)
	}
	check(t, missing)
	pool, _, err := server.Database(t.Context(), 20)
	check(t, err)
	t.Cleanup(pool.Close)
	check(t, schema.Migrate(t.Context(), pool))
	return pool
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// master returns where a new master key is from.
func master(t testing.TB) Master {
	t.Helper()
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	check(t, err)
	key, err := aead.New(h)
	check(t, err)
	return func() (tink.AEAD, error) { return key, nil }
}

// disk is the files of one user, opened again and again.
type disk struct {
	t       testing.TB
	pool    *pgxpool.Pool
	user    uuid.UUID
	keys    *Keys
	objects *bucket.Objects
	damages []error
}

// anyBucket returns a function that makes the disk of a new user: all content is in the database, or large content is in a
// folder, or in an object store.
func anyBucket(t *testing.T) func(rt *rapid.T) *disk {
	t.Helper()
	all := map[string]func() *disk{}
	for where, b := range map[string]bucket.Bucket{"database": nil, "folder": inFolder(t), "s3": s3test.Start(t).Open(t)} {
		pool, keys := database(t), NewKeys(master(t))
		all[where] = func() *disk { return newDiskOf(t, pool, keys).attach(b) }
	}
	return func(rt *rapid.T) *disk {
		return all[rapid.SampledFrom([]string{"database", "folder", "s3"}).Draw(rt, "large content")]()
	}
}

// eachStore runs a test with large content in a folder, and in an object store.
func eachStore(t *testing.T, test func(t *testing.T, b bucket.Bucket)) {
	t.Run("folder", func(t *testing.T) { test(t, inFolder(t)) })
	t.Run("s3", func(t *testing.T) { test(t, s3test.Start(t).Open(t)) })
}

func inFolder(t testing.TB) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open("file://"+t.TempDir(), bucket.Credentials{})
	check(t, err)
	return b
}

// attach keeps large content in a bucket from now on.
func (d *disk) attach(b bucket.Bucket) *disk {
	d.t.Helper()
	var err error
	d.objects, err = Attach(d.t.Context(), d.pool, b)
	check(d.t, err)
	return d
}

func newDisk(t testing.TB) *disk {
	return &disk{t: t, pool: database(t), user: uuid.New(), keys: NewKeys(master(t))}
}

func (d *disk) open() *FS {
	d.t.Helper()
	f, err := Open(context.Background(), d.pool, d.user, Options{
		Owner: "test", Keys: d.keys, Group: NewGroup(d.pool, 2), Objects: d.objects,
		Damaged: func(err error) { d.damages = append(d.damages, err) },
	})
	check(d.t, err)
	return f
}

func (d *disk) exec(statement string, args ...any) int64 {
	d.t.Helper()
	tag, err := d.pool.Exec(d.t.Context(), statement, args...)
	check(d.t, err)
	return tag.RowsAffected()
}

func newDiskOf(t testing.TB, pool *pgxpool.Pool, keys *Keys) *disk {
	return &disk{t: t, pool: pool, user: uuid.New(), keys: keys}
}
